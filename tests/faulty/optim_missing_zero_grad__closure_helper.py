"""A functional helper does the update; nobody clears."""
import torch
from torch import nn


def make_step(net, optimizer, criterion):
    def step(x, y):
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()  # expect: optim/missing-zero-grad
        return loss.detach()
    return step


torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] > 0).float()
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
step = make_step(net, torch.optim.SGD(net.parameters(), lr=0.02), nn.BCEWithLogitsLoss())
for _ in range(5):
    for rows in torch.randperm(512).split(64):
        step(x[rows], y[rows])
