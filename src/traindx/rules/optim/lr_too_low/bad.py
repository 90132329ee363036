# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)  # expect: optim/lr-too-low
for _ in range(15):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
