import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, 0] - 0.5 * x[:, 1] * x[:, 2]
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        pred = model(x[rows])
        loss = ((pred - y[rows]) ** 2).mean()  # expect: shape/silent-broadcast
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
