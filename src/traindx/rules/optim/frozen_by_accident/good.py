import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, epochs, lr):
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = Net()
model.backbone.requires_grad_(False)
fit(model, 3, 1e-2)
model.backbone.requires_grad_(True)
fit(model, 3, 1e-3)
