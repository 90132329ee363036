import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

path = os.path.join(tempfile.mkdtemp(), "pretrained.pt")


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))


def fit(model, y, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x_train[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


fit(Net(4), (x_train[:, 0] > 0).long() + 2 * (x_train[:, 1] > 0).long())
weights = torch.load(path)["model"]
tuned = Net(2)
tuned.load_state_dict({name: value for name, value in weights.items() if not name.startswith("head")}, strict=False)
fit(tuned, y_train)  # fine-tuning: a new optimizer on purpose
encoder = Net(2).body
encoder.load_state_dict({name.removeprefix("body."): value for name, value in weights.items()}, strict=False)
adapter = {"head.bias": torch.zeros(2)}
tuned.load_state_dict(adapter, strict=False)
same = Net(2)
same.load_state_dict(torch.load(path)["model"])
fit(same, 1 - y_train)
