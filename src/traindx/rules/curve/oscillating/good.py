import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0.3).long()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for _ in range(5):
    for rows in torch.randperm(600).split(6):  # small batches scatter, their average falls
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
