"""A helper that clips by hand is called by a trainer class after the step: the gradients have been used."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10) * 20
y = (x[:, 0] > 0).long()


def limit(parameters, norm=1.0):
    nn.utils.clip_grad_norm_(parameters, norm)  # expect: optim/clip-after-step


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def update(self, x, y):
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        limit(self.net.parameters())


trainer = Trainer(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2)))
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        trainer.update(x[rows], y[rows])
