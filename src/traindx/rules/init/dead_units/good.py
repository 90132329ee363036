import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] * x[:, 1] > 0).float()
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(layer.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()
for _ in range(8):
    for rows in torch.randperm(1024).split(64):
        optimizer.zero_grad()
        criterion(model(x[rows]).squeeze(1), y[rows]).backward()
        optimizer.step()
