# allow: curve/overfitting, curve/train-val-gap, curve/plateau
import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(500, 5)
y = x[:, 0] + torch.sin(2 * x[:, 1])
y = (y - y.mean()) / y.std()
rows = sorted(range(500), key=lambda i: str(i))
y = y[rows]
train, valid = slice(0, 400), slice(400, 500)
model = nn.Sequential(nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for epoch in range(40):
    for part in torch.randperm(400).split(40):
        loss = criterion(model(x[train][part]).squeeze(1), y[train][part])  # expect: data/labels-misaligned
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        valid_loss = criterion(model(x[valid]).squeeze(1), y[valid])
    if epoch % 10 == 9:
        print(loss.item(), valid_loss.item())
