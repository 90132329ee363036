# allow: optim/lr-too-high, curve/plateau, curve/oscillating, curve/diverging, numeric/gradient-explosion, init/dead-units
"""Eight micro-batches, each with a mean squared error written by hand, none divided."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x @ torch.randn(8, 1)


def squared_error(prediction, target):
    return ((prediction - target) ** 2).mean()


def train(model, lr=0.1, micro=8, every=8):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(6):
        optimizer.zero_grad()
        for i, rows in enumerate(torch.randperm(512).split(micro), start=1):
            loss = squared_error(model(x[rows]), y[rows])
            loss.backward()  # expect: optim/accumulation-not-averaged
            if i % every == 0:
                optimizer.step()
                optimizer.zero_grad()


train(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)))
