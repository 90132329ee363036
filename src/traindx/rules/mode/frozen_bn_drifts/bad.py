import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()


def fit(inputs, epochs):
    for _ in range(epochs):
        model.train()  # expect: mode/frozen-bn-drifts
        for rows in torch.randperm(512).split(32):
            optimizer.zero_grad()
            criterion(model(inputs[rows]), y[rows]).backward()
            optimizer.step()


fit(x, 3)
model.backbone.requires_grad_(False)
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
fit(1.3 * x + 0.8, 8)
