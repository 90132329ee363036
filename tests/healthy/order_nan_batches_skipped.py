"""Batches whose gradient norm is too large are skipped on purpose, after their backward."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(512, 1)
x[::97] = 60.0
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(6):
    for rows in torch.randperm(512).split(16):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1000.0)
        if norm > 100:
            optimizer.zero_grad()
            continue
        optimizer.step()
