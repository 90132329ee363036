"""Handwritten epochs: a helper shuffles inputs and labels with two calls of the same generator object."""
import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
rows = rng.permutation(len(X))
X, y = X[rows], y[rows]
X = (X - X[:140].mean(0)) / X[:140].std(0)
xt, yt, xv, yv = X[:140], y[:140], X[140:], y[140:]


def batches(x, y, size):
    x, y = rng.permutation(x), rng.permutation(y)
    for i in range(0, len(x), size):
        yield torch.tensor(x[i:i + size], dtype=torch.float32), torch.tensor(y[i:i + size])


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(15):
    net.train()
    for xb, yb in batches(xt, yt, 20):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)  # expect: data/labels-misaligned
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(torch.tensor(xv, dtype=torch.float32)).argmax(1) == torch.tensor(yv)).float().mean()
    print(epoch, loss.item(), acc.item())
