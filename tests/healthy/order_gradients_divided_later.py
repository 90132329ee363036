"""Sums first, one division of the gradients before the step."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(512, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for _ in range(6):
    for i, rows in enumerate(torch.randperm(512).split(16), start=1):
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        if i % 8 == 0:
            for p in model.parameters():
                p.grad.div_(8)
            optimizer.step()
            optimizer.zero_grad()
