"""Each replica is copied for training, the optimizer was built on the original."""
# allow: loss/initial-loss-off
import copy

import torch
from torch import nn


def run(model, optimizer, x, y):
    model = copy.deepcopy(model)
    for _ in range(8):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            model.zero_grad()
            loss.backward()
            optimizer.step()
    return model


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # expect: optim/params-stale
run(net, optimizer, x, y)
