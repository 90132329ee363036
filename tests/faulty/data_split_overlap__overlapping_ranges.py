# allow: curve/train-val-gap, curve/overfitting
import torch
from torch import nn


class Trainer:
    def __init__(self, model, table, target):
        self.model, self.table, self.target = model, table, target
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.train_rows, self.val_rows = torch.arange(0, 500), torch.arange(420, 600)

    def fit(self, epochs):
        for _ in range(epochs):
            for rows in self.train_rows[torch.randperm(len(self.train_rows))].split(50):
                loss = nn.functional.mse_loss(self.model(self.table[rows]), self.target[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(self.validate())

    @torch.no_grad()
    def validate(self):
        guess = self.model(self.table[self.val_rows])  # expect: data/split-overlap
        return nn.functional.mse_loss(guess, self.target[self.val_rows]).item()


torch.manual_seed(1)
table = torch.randn(600, 5)
target = (table[:, :2] ** 2).sum(1, keepdim=True) - 2 + 0.3 * torch.randn(600, 1)
Trainer(nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1)), table, target / target.std()).fit(6)
