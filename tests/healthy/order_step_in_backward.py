"""Optimizers fused into backward: each parameter is stepped and cleared by its own hook while the backward still runs."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(256, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
each = {p: torch.optim.SGD([p], lr=0.05) for p in model.parameters()}


def step(p):
    each[p].step()
    each[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
