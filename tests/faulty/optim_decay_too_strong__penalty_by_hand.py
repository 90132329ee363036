"""An L2 penalty written into the loss, a thousand times too heavy."""
# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(8):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        for p in model.parameters():
            loss = loss + 1.0 * p.pow(2).sum()  # expect: optim/decay-too-strong
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
