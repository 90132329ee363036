# twin: self.balance(*self.table) => self.table
# twin: self.train, self.val = TensorDataset(x[rows[n:]], y[rows[n:]]), => self.train, self.val = TensorDataset(*self.balance(x[rows[n:]], y[rows[n:]])),
"""A data module class oversamples the rare class and then splits: copies land on both sides."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Data:
    def __init__(self, share=0.25):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(700, 12, generator=g)
        self.table = x, (x[:, 0] + x[:, 1] > 1.6).long()
        self.split(share, g)

    def balance(self, x, y):
        rare = (y == 1).nonzero().flatten()
        again = torch.cat([torch.arange(len(y)), rare.repeat((len(y) - len(rare)) // len(rare) - 1)])
        return x[again], y[again]

    def split(self, share, g):
        x, y = self.balance(*self.table)
        rows = torch.randperm(len(x), generator=g)
        n = int(share * len(x))
        self.train, self.val = TensorDataset(x[rows[n:]], y[rows[n:]]), TensorDataset(x[rows[:n]], y[rows[:n]])

    def loaders(self):
        return DataLoader(self.train, 50, shuffle=True), DataLoader(self.val, 100)  # expect: data/split-overlap


torch.manual_seed(0)
train, val = Data().loaders()
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in val) / len(val.dataset))
