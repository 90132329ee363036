# allow: curve/oscillating, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(160, 8)
y = (x[:, :2].sum(1) > 0).long()
model = nn.Sequential(
    nn.Linear(8, 32),
    nn.BatchNorm1d(32),  # expect: mode/bn-small-batch
    nn.ReLU(),
    nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for _ in range(3):
    model.train()
    for rows in torch.randperm(160).split(4):
        optimizer.zero_grad()
        criterion(model(x[rows]), y[rows]).backward()
        optimizer.step()
