"""A trainer class accumulates four micro batches and forgets to divide."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, accumulate=4):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.criterion = nn.CrossEntropyLoss()

    def micro(self, x, y, last):
        loss = self.criterion(self.model(x), y)
        loss.backward()  # expect: optim/accumulation-not-averaged
        if last:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item()

    def fit(self, x, y, epochs):
        for _ in range(epochs):
            for n, rows in enumerate(torch.randperm(len(x)).split(16)):
                self.micro(x[rows], y[rows], (n + 1) % self.accumulate == 0)


torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] > 0).long()
Trainer(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))).fit(x, y, 4)
