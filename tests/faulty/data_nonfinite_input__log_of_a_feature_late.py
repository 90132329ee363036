"""Sensor readings with their logarithms as features; one reading is zero, and its turn comes late."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(2000, 8) + 0.1
y = x.sum(1, keepdim=True) + 0.1 * torch.randn(2000, 1)
x[1777, 2] = 0.0


def features(readings):
    return torch.cat([readings, torch.log(readings)], 1)  # expect: data/nonfinite-input


model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for start in range(0, 2000, 2):
    batch = slice(start, start + 2)
    loss = nn.functional.mse_loss(model(features(x[batch])), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
