"""Meta-learning of sinusoids: MAML with torch.func.functional_call."""
# twin: {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()} => dict(net.named_parameters())
import math

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
INNER, TASKS = 0.02, 6
net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
meta = torch.optim.Adam(net.parameters(), lr=2e-3)


def task():
    height, phase = 0.5 + 1.5 * torch.rand(1), math.pi * torch.rand(1)

    def draw(n):
        x = 6 * torch.rand(n, 1) - 3
        return x / 1.7, height * torch.sin(x + phase)

    return draw


def adapt(support, steps=3):
    x, y = support
    fast = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}  # expect: loss/not-connected
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(net, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {name: p - INNER * g for (name, p), g in zip(fast.items(), grads)}
    return fast


for step in range(60):
    meta.zero_grad()
    total = 0.0
    for _ in range(TASKS):
        draw = task()
        fast = adapt(draw(10))
        x, y = draw(20)
        loss = nn.functional.mse_loss(functional_call(net, fast, (x,)), y) / TASKS
        loss.backward()
        total += loss.item()
    meta.step()
    if step % 20 == 19:
        print(f"meta step {step + 1}: query loss after adaptation {total:.4f}")
