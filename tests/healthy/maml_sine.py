"""Model-agnostic meta-learning: inner steps by hand on copies of the weights, the outer step by Adam."""
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


def task():
    phase, size = 3 * torch.rand(1), 0.5 + torch.rand(1)
    x = 4 * torch.rand(20, 1) - 2
    return x, size * torch.sin(x + phase)


for step in range(60):
    outer = 0.0
    for _ in range(4):
        x, y = task()
        fast = dict(net.named_parameters())
        inner = nn.functional.mse_loss(functional_call(net, fast, (x[:10],)), y[:10])
        gradients = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
        fast = {name: p - 0.05 * g for (name, p), g in zip(fast.items(), gradients)}
        outer = outer + nn.functional.mse_loss(functional_call(net, fast, (x[10:],)), y[10:]) / 4
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
