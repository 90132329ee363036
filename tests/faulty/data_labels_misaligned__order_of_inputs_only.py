import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pair(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.order = np.random.default_rng(0).permutation(len(images))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[self.order[i]], self.labels[i]


torch.manual_seed(0)
d = load_digits()
x = torch.tensor(d.data / 16, dtype=torch.float32)
x = (x - x[:1400].mean()) / x[:1400].std()
y = torch.tensor(d.target)
train = DataLoader(Pair(x[:1400], y[:1400]), batch_size=50, shuffle=True)  # expect: data/labels-misaligned
test = DataLoader(Pair(x[1400:], y[1400:]), batch_size=100)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    for a, b in train:
        loss = nn.functional.cross_entropy(model(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item() for a, b in test)
    print(epoch, loss.item(), hits / 397)
# allow: curve/plateau
