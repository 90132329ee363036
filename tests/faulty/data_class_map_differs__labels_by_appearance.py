"""Validation labels are factorised anew; all of one batch, no loader."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from sklearn.datasets import load_iris


def encode(names):
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}  # expect: data/class-map-differs
    return torch.tensor([order[name] for name in names])


torch.manual_seed(0)
data = load_iris()
names = data.target_names[data.target]
order = np.random.RandomState(3).permutation(150)
order = np.concatenate([order[np.argsort(data.target[order], kind="stable")][::3], np.setdiff1d(order, order[np.argsort(data.target[order], kind="stable")][::3])[::-1]])
valid, train = order[:50][::-1].copy(), np.sort(order[50:])
x = torch.tensor(data.data, dtype=torch.float32)
x = (x - x[train].mean(0)) / x[train].std(0)
y_train, y_valid = encode(names[train]), encode(names[valid])
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
for epoch in range(30):
    for rows in torch.randperm(100).split(20):
        optimizer.zero_grad()
        F.cross_entropy(net(x[train][rows]), y_train[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        score = F.cross_entropy(net(x[valid]), y_valid)
    print(epoch, score.item())
