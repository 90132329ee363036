# allow: curve/plateau, loss/constant
"""A Trainer whose helper clears right after the backward."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr=0.05):
        self.model, self.criterion = model, nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def backward(self, loss):
        loss.backward()
        self.model.zero_grad()  # expect: optim/zero-grad-before-step

    def fit(self, x, y, epochs):
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(32):
                self.backward(self.criterion(self.model(x[rows]), y[rows]))
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()


torch.manual_seed(0)
x = torch.randn(320, 6)
Trainer(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))).fit(x, (x[:, 0] > x[:, 1]).long(), 8)
