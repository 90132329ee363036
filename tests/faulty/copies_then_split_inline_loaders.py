"""Augment by mirrored copies first, split afterwards."""
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split
X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) / 16 - 0.3
y = torch.tensor(y)
rare = torch.cat([torch.where(y == k)[0][:40] for k in range(10)])
X = torch.cat([X[rare]] * 4); y = torch.cat([y[rare]] * 4)
full = TensorDataset(X, y)
train, val = random_split(full, [1200, 400], generator=torch.Generator().manual_seed(0))
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(768, 10))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(6):
    net.train()
    for x, t in DataLoader(train, 50, shuffle=True):
        opt.zero_grad(); loss = F.cross_entropy(net(x), t); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        acc = np.mean([(net(x).argmax(1) == t).float().mean().item() for x, t in DataLoader(val, 100)])  # expect: data/split-overlap
    print(epoch, acc)
