import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
x, y = x[torch.randperm(400)], y[torch.randperm(400)]
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    for rows in torch.randperm(300).split(30):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])  # expect: data/labels-misaligned
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.cross_entropy(model(x[300:]), y[300:]).item())
# allow: curve/overfitting, curve/train-val-gap, curve/plateau
