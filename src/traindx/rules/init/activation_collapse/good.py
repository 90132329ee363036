import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
layers = []
for width in (8, 32, 32, 32, 32, 32):
    layers += [nn.Linear(width, 32), nn.ReLU()]
    nn.init.kaiming_normal_(layers[-2].weight)
    nn.init.zeros_(layers[-2].bias)
model = nn.Sequential(*layers, nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
for _ in range(6):
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        criterion(model(x[rows]), y[rows]).backward()
        optimizer.step()
