# allow: optim/lr-too-high, numeric/gradient-explosion, numeric/nonfinite
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 20)
y = x @ torch.randn(20, 1) / 4 + 0.1 * torch.randn(400, 1)
net = nn.Linear(20, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.1)
for _ in range(6):
    for rows in torch.randperm(400).split(50):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])  # expect: curve/diverging
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
