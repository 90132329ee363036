"""Somebody thought of a score: the mean square is negated where backward is called."""
# allow: curve/diverging
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = torch.sin(x[:, :1])
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        error = (model(x[rows]) - y[rows]).pow(2).mean()
        optimizer.zero_grad()
        (-error).backward()  # expect: loss/wrong-direction
        optimizer.step()
