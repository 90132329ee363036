import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")


def train(epochs):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    start = 0
    if os.path.exists(path):
        checkpoint = torch.load(path)
        start = checkpoint["epoch"] + 1
        model.load_state_dict(checkpoint["model"])  # expect: repro/resume-incomplete
    for epoch in range(start, epochs):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


train(3)
train(6)
