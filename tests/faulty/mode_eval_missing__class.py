# twin: self.model.train(mode and epoch >= 0) => self.model.train(mode)
# twin: self.run(self.val, True, epoch) => self.run(self.val, False, epoch)
"""A trainer class has one method for both kinds of pass; validation calls it with the wrong flag."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train, self.val = model, train, val
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    def run(self, loader, mode, epoch, learn=False):
        self.model.train(mode and epoch >= 0)
        total = 0.0
        with torch.set_grad_enabled(learn):
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x), y)  # expect: mode/eval-missing
                if learn:
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                total += loss.item() * len(y)
        return total / len(loader.dataset)

    def fit(self, epochs):
        for epoch in range(epochs):
            print(epoch, self.run(self.train, True, epoch, learn=True), self.run(self.val, True, epoch))


torch.manual_seed(0)
x = torch.randn(700, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.4), nn.Linear(48, 3))
Trainer(model, DataLoader(TensorDataset(x[:500], y[:500]), 50, shuffle=True), DataLoader(TensorDataset(x[500:], y[500:]), 50)).fit(5)
