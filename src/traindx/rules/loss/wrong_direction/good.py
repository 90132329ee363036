import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x @ torch.randn(8, 1)) / 3
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=5e-2)
criterion = nn.MSELoss()
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
