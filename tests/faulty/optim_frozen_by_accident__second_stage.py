"""Stage two hands the backbone to a new optimizer, but nobody unfreezes it."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def epochs(model, optimizer, count):
    for _ in range(count):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = Net()
for p in model.backbone.parameters():
    p.requires_grad = False
epochs(model, torch.optim.Adam(model.head.parameters(), lr=1e-2), 3)
everything = torch.optim.Adam(model.parameters(), lr=1e-3)  # expect: optim/frozen-by-accident
epochs(model, everything, 3)
