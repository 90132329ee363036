"""zero_grad for every micro-batch, in a class with the step hidden in a method."""
import torch
from torch import nn


class Loop:
    def __init__(self, every=5):
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=5e-3)
        self.every, self.seen = every, 0

    def micro(self, x, y):
        self.optimizer.zero_grad()  # expect: optim/window-lost
        loss = nn.functional.cross_entropy(self.net(x), y) / self.every
        loss.backward()
        self.seen += 1
        if self.seen % self.every == 0:
            self.optimizer.step()


torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x[:, 0] > x[:, 1]).long()
loop = Loop()
for _ in range(8):
    for rows in torch.randperm(400).split(20):
        loop.micro(x[rows], y[rows])
