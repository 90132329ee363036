import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
nn.init.normal_(model[2].weight, std=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(400).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
