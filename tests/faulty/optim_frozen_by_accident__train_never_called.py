"""The backbone is meant to be frozen, but the freezing stands in an overridden train() that nobody calls."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()


class Net(nn.Module):
    def __init__(self, freeze=True):
        super().__init__()
        self.freeze = freeze
        self.backbone = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def train(self, mode=True):
        super().train(mode)
        if self.freeze:
            self.backbone.eval()
            for p in self.backbone.parameters():
                p.requires_grad = False  # expect: optim/frozen-by-accident
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


pretrained = Net(freeze=False)
net = Net()
net.load_state_dict(pretrained.state_dict())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
