"""Zeros at the start that are meant: LoRA's B, the end of a residual branch, a zero head, biases, norms; sparse ReLUs."""
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.outer = nn.Linear(width, 32), nn.Linear(32, width)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(x)))


torch.manual_seed(11)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
head = nn.Linear(16, 3)
nn.init.zeros_(head.weight)
nn.init.zeros_(head.bias)
model = nn.Sequential(Adapted(nn.Linear(8, 16)), nn.ReLU(), Residual(16), nn.LayerNorm(16), Residual(16), head)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for epoch in range(8):
    for rows in torch.randperm(512).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows] + (x[rows, 2] > 1).long()).backward()
        optimizer.step()
