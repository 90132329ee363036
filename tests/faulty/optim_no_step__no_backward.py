# allow: curve/plateau, loss/constant
"""Everything but the backward."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = (x[:, 0] > x[:, 1]).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(5):
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.step()  # expect: optim/no-step
