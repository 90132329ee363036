"""A loss summed over the batch: gradients of thousands, and all is well. Another in log-cosh with a clamp."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 12)
y = x @ torch.randn(12, 1) / 3
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=2e-5, momentum=0.9)
for _ in range(12):
    for rows in torch.randperm(1024).split(256):
        error = net(x[rows]) - y[rows]
        loss = ((error ** 2).sum() + torch.log(torch.cosh(error.clamp(-20, 20))).sum()) * 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
