import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(4):
    for rows in torch.randperm(256).split(32):
        loss = -torch.log_softmax(net(x[rows]), dim=1)[torch.arange(len(rows)), y[rows]].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
