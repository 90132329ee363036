# allow: numeric/low-precision-weights, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] + x[:, 1] > 0).long()


def build():
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2)).half()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # expect: numeric/eps-lost-in-half

    def run(self, epochs):
        for _ in range(epochs):
            for rows in torch.randperm(256).split(32):
                self.optimizer.zero_grad()
                logits = self.model(x[rows].half())
                loss = nn.functional.cross_entropy(logits.float(), y[rows])
                loss.backward()
                self.optimizer.step()


Trainer(build()).run(4)
