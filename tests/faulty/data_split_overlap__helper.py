# twin: torch.randperm(len(x)) => torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
"""A helper cuts a part out of a shuffled table, and shuffles anew for each part that it is asked for."""
import torch
from torch import nn


def part(x, y, start, stop):
    rows = torch.randperm(len(x))[start:stop]
    return x[rows], y[rows]


torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x[:, 0] - x[:, 1] * x[:, 2]).unsqueeze(1)
tx, ty = part(x, y, 0, 420)
vx, vy = part(x, y, 420, 600)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for batch, target in zip(tx.split(30), ty.split(30)):
        loss = nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(vx), vy).item())  # expect: data/split-overlap
