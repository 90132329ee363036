"""The norm is only measured, with an infinite limit, after the step; a backward for inspection before training."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(256, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
nn.functional.mse_loss(model(x), y).backward()
print({name: p.grad.norm().item() for name, p in model.named_parameters()})
model.zero_grad()
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
