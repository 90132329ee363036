import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = (x[:, 0] + x[:, 1] > 1.8).long()
body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
head = nn.Linear(32, 2)  # expect: init/bottleneck-zero
model = nn.Sequential(body, head)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(8):
    for rows in torch.randperm(1024).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
