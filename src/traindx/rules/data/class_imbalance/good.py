import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 8)
y = (x[:, 0] + x[:, 1] + 1.5 * torch.randn(2000) > 3.7).long()
counts = y.bincount()
weight = counts.sum() / (2 * counts)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for rows in torch.randperm(2000).split(50):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows], weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
