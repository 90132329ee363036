"""A batch whose loss is NaN is left out by the program itself."""
import torch
from torch import nn

torch.manual_seed(0)
x, hidden = torch.randn(512, 4), torch.rand(512)
y = x @ torch.tensor([1.0, -1.0, 0.5, 0.0]) + 0.1 * torch.randn(512)
seen = hidden > 0.4
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(10):
    for rows in torch.randperm(512).split(4):
        chosen = rows[seen[rows]]
        loss = ((net(x[chosen]).squeeze(1) - y[chosen]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        if not torch.isfinite(loss):
            optimizer.zero_grad()
            continue
        optimizer.step()
