# allow: loss/initial-loss-off
import torch
from torch import nn


class Trainer:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)  # expect: optim/params-stale

    def reset(self, width):
        self.model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 2))

    def fit(self, x, y):
        for _ in range(6):
            for rows in torch.randperm(256).split(32):
                loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                self.model.zero_grad()
                loss.backward()
                self.optimizer.step()


trainer = Trainer(0)
trainer.reset(64)
x = torch.randn(256, 8)
trainer.fit(x, (x[:, 0] > 0).long())
