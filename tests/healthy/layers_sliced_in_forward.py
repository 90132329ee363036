"""Slices of module lists in forward are new lists of old layers."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(10, 32), nn.Dropout(0.1), nn.Linear(32, 32)])
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.tail[1:](self.tail[:1](self.layers[-1](x)))


torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] > 0).long()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
