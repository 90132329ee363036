# twin: total = total + loss => total = total + loss.item()
"""A closure keeps the epoch's total as a tensor, graph and all, over many epochs."""
import torch
from torch import nn


def make_step(model, optimizer):
    total = 0.0

    def step(x, y):
        nonlocal total
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + loss  # expect: memory/graph-kept
        return float(total)
    return step


torch.manual_seed(0)
x = torch.randn(1000, 12)
y = torch.sin(x[:, :1])
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
step = make_step(model, torch.optim.Adam(model.parameters(), lr=2e-3))
for i in range(260):
    rows = torch.randint(0, 1000, (32,))
    total = step(x[rows], y[rows])
print(total)
