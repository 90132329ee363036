# allow: data/labels-misaligned
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(360, 30)
y = ((x[:, 0] + 1.2 * torch.randn(360)) > 0).long()
train, valid = slice(0, 60), slice(60, 360)
net = nn.Sequential(nn.Linear(30, 256), nn.ReLU(), nn.Linear(256, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(60):
    for rows in torch.randperm(60).split(20):
        loss = nn.functional.cross_entropy(net(x[train][rows]), y[train][rows])  # expect: curve/overfitting
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.cross_entropy(net(x[valid]), y[valid]).item())
