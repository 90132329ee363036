# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1.0)  # expect: optim/decay-too-strong
for _ in range(8):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
