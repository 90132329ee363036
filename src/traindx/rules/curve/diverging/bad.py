import torch
from torch import nn

torch.manual_seed(0)
w = torch.randn(8, 1) / 3
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for hour in range(240):
    x = torch.randn(32, 8)
    y = x @ w + (0.5 + hour / 60) * torch.randn(32, 1)  # the sensor ages: its noise grows
    loss = nn.functional.mse_loss(net(x), y)  # expect: curve/diverging
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
