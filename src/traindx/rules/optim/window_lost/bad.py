# allow: optim/lr-too-low, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(320, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
together = 4
for _ in range(10):
    batches = torch.randperm(320).split(32)
    for i, rows in enumerate(batches, start=1):
        optimizer.zero_grad()  # expect: optim/window-lost
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        (loss / together).backward()
        if i % together == 0 or i == len(batches):
            optimizer.step()
