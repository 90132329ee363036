# allow: loss/initial-loss-off
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

path = os.path.join(tempfile.mkdtemp(), "weights.pt")


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.backbone(x)


def fit(model, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


first = Wrapped()
fit(first, 4)
torch.save(first.state_dict(), path)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
own = model.state_dict()
own.update({name: value for name, value in torch.load(path).items() if name in own})
model.load_state_dict(own)  # expect: repro/load-matched-nothing
fit(model, 2)
