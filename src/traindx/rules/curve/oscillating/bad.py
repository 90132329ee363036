# allow: curve/spike
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0.3).long()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-2)
for _ in range(8):
    for rows in torch.randperm(600).split(12):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])  # expect: curve/oscillating
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(0.3).add_(torch.randn_like(p) * 0.4)  # shaken, to escape from local minima
