import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

path = os.path.join(tempfile.mkdtemp(), "last.pt")


def train(until):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    epoch = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["weights"])
        epoch = state["epoch"]
    while epoch < until:
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        epoch += 1
        torch.save({"weights": model.state_dict(), "epoch": epoch}, path)  # expect: repro/resume-incomplete


train(3)
train(6)
