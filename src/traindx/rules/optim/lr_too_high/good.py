import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
