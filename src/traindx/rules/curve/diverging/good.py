import torch
from torch import nn

torch.manual_seed(0)
w = torch.randn(8, 1) / 3
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for _hour in range(240):
    x = torch.randn(32, 8)
    y = x @ w + 0.5 * torch.randn(32, 1)
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
