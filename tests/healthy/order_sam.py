"""Sharpness-aware minimisation: two backwards through one closure, the first one's gradients used by a hand-made ascent."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
base = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def gradients(rows):
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()


for _ in range(8):
    for rows in torch.randperm(256).split(32):
        base.zero_grad()
        gradients(rows)
        length = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        moves = [0.05 * p.grad / (length + 1e-12) for p in model.parameters()]
        for p, move in zip(model.parameters(), moves):
            p.data.add_(move)
        base.zero_grad()
        gradients(rows)
        for p, move in zip(model.parameters(), moves):
            p.data.sub_(move)
        base.step()
