"""Two networks trained together, one of them under no_grad."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
head = nn.Linear(32, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        with torch.no_grad():
            features = encoder(x[rows])  # expect: loss/not-connected
        loss = nn.functional.cross_entropy(head(features), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
