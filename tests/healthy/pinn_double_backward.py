"""A physics-informed network: the loss holds second derivatives of the output, points are drawn anew each step."""
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def residual(t):
    u = net(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    return ddu + 4 * u


start = torch.zeros(1, 1, requires_grad=True)
for step in range(400):
    t = torch.rand(64, 1, requires_grad=True)
    u0 = net(start)
    v0 = torch.autograd.grad(u0.sum(), start, create_graph=True)[0]
    loss = residual(t).pow(2).mean() + 10 * (u0 - 1).pow(2).mean() + v0.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(step + 1, loss.item())
