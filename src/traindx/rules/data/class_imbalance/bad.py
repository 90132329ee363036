import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 8)
y = (x[:, 0] + x[:, 1] + 1.5 * torch.randn(2000) > 3.7).long()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for _ in range(3):
    for rows in torch.randperm(2000).split(50):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])  # expect: data/class-imbalance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# allow: curve/plateau, optim/lr-too-low
