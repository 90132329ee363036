"""Adversarial training: a backward only for the inputs' gradient, whose traces in the weights are cleared before the real one."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def attack(xb, yb):
    xb = xb.clone().requires_grad_()
    nn.functional.cross_entropy(model(xb), yb).backward()
    return (xb + 0.05 * xb.grad.sign()).detach()


for _ in range(6):
    for rows in torch.randperm(256).split(32):
        hard = attack(x[rows], y[rows])
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(hard), y[rows])
        loss.backward()
        optimizer.step()
