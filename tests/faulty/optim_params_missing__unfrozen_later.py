"""The optimizer is built while the backbone is frozen; the second phase unfreezes it and goes on with the same optimizer."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


class FineTuner:
    def __init__(self, model):
        self.model = model
        model.backbone.requires_grad_(False)
        self.optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=3e-3)  # expect: optim/params-missing

    def epochs(self, x, y, count):
        epochs(self.model, self.optimizer, x, y, count)


def epochs(model, optimizer, x, y, count):
    for _ in range(count):
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(640, 10)
source, target = (x[:, 0] * x[:, 1] > 0).long(), (x[:, 2] * x[:, 3] > 0).long()
backbone = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
first = Net(backbone, 2)
epochs(first, torch.optim.Adam(first.parameters(), lr=3e-3), x, source, 3)
tuner = FineTuner(Net(backbone, 2))
tuner.epochs(x, target, 4)
tuner.model.backbone.requires_grad_(True)
tuner.epochs(x, target, 6)
