# allow: curve/plateau, init/gradient-vanishing
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
for layer in model[:3]:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=12.0)  # expect: init/saturated
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for _ in range(6):
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        criterion(model(x[rows]), y[rows]).backward()
        optimizer.step()
