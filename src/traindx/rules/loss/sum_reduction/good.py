import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :1] - 0.5 * x[:, 1:2] * x[:, 2:3]
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
