"""MAML with autograd.grad in the inner loop; one outer backward for all tasks."""
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
outer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(25):
    losses = []
    for _ in range(4):
        phase = torch.rand(1) * 3
        x = torch.rand(20, 1) * 6 - 3
        y = torch.sin(x + phase)
        weights = dict(model.named_parameters())
        inner = nn.functional.mse_loss(functional_call(model, weights, (x[:10],)), y[:10])
        grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        weights = {name: w - 0.05 * g for (name, w), g in zip(weights.items(), grads)}
        losses.append(nn.functional.mse_loss(functional_call(model, weights, (x[10:],)), y[10:]))
    outer.zero_grad()
    torch.stack(losses).mean().backward()
    outer.step()
