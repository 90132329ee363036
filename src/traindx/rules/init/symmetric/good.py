import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = (x[:, 0] * x[:, 1] > 0).float()
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for _ in range(10):
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        criterion(model(x[rows]).squeeze(1), y[rows]).backward()
        optimizer.step()
