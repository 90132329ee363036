"""A loss with prototypes of its own, which the optimizer never gets."""
import torch
import torch.nn.functional as F
from torch import nn


class PrototypeLoss(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.prototypes = nn.Parameter(torch.randn(classes, width))

    def forward(self, features, labels):
        scores = F.normalize(features, dim=1) @ F.normalize(self.prototypes, dim=1).T
        return F.cross_entropy(8 * scores, labels)


class Trainer:
    def __init__(self, net, criterion):
        self.net, self.criterion = net, criterion
        self.optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)  # expect: optim/params-missing

    def epoch(self, x, y):
        for rows in torch.randperm(len(x)).split(32):
            loss = self.criterion(self.net(x[rows]), y[rows])
            self.net.zero_grad()
            self.criterion.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
trainer = Trainer(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)), PrototypeLoss(3, 16))
for _ in range(5):
    trainer.epoch(x, y)
