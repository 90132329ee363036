import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] - 0.5 * x[:, 1] * x[:, 2])[:, None]
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.HuberLoss()
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x[rows]), y[rows])  # expect: shape/loss-target-mismatch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
