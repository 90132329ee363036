# allow: optim/lr-too-low, init/saturated
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(800, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Linear(10, 2)  # a linear model cannot see a product
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(10):
    for rows in torch.randperm(800).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])  # expect: curve/plateau
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
