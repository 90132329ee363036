# twin: self.opt.step()  # expect => self.opt.step(); self.opt.zero_grad()  # expect
"""A trainer class has a method for everything but for clearing the gradients."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.opt = torch.optim.SGD(model.parameters(), lr=0.02)

    def loss(self, batch):
        return nn.functional.mse_loss(self.model(batch[0]), batch[1])

    def update(self, loss):
        loss.backward()
        self.opt.step()  # expect: optim/missing-zero-grad

    def fit(self, epochs):
        for epoch in range(epochs):
            for batch in self.loader:
                loss = self.loss(batch)
                self.update(loss)
            print(epoch, loss.item())


torch.manual_seed(0)
x = torch.randn(400, 6)
y = x @ torch.randn(6, 1)
Trainer(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)), DataLoader(TensorDataset(x, y), 40, shuffle=True)).fit(5)
