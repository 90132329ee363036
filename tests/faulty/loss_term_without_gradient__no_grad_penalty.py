"""An L1 penalty computed by a helper that is under no_grad."""
import torch
from torch import nn


@torch.no_grad()
def sparsity(model):
    return sum(p.abs().sum() for p in model.parameters())  # expect: loss/term-without-gradient


torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :1] - x[:, 1:2]
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows]) + 1e-3 * sparsity(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
