"""A helper sorts the files of inputs and of labels by different keys."""
import numpy as np
import torch
from torch import nn
from sklearn.datasets import load_digits


def load():
    data = load_digits()
    names = [f"img_{i}.png" for i in range(len(data.target))]
    images = dict(zip(names, data.data.astype("float32") / 8 - 1))
    labels = dict(zip(names, data.target))
    x = np.stack([images[name] for name in sorted(names)])
    y = np.array([labels[name] for name in sorted(names, key=lambda n: int(n[4:-4]))])
    return torch.from_numpy(x), torch.from_numpy(y)


torch.manual_seed(0)
x, y = load()
train, valid = torch.randperm(len(x)).split([1400, len(x) - 1400])
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    for rows in train[torch.randperm(1400)].split(50):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])  # expect: data/labels-misaligned
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, nn.functional.cross_entropy(net(x[valid]), y[valid]).item())
