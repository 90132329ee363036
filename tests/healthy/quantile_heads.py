"""Quantile regression: targets [B, 1] against heads [B, Q], and distributional value targets [B, N, 1] - [B, 1, N]."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(512, 1) * 4 - 2
y = torch.sin(x) + (0.1 + 0.2 * x.abs()) * torch.randn(512, 1)
levels = torch.linspace(0.05, 0.95, 16)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(512).split(16):
        heads = model(x[rows])
        error = y[rows] - heads
        pinball = torch.maximum(levels * error, (levels - 1) * error).mean()
        samples = y[rows].expand(-1, 16) + 0.05 * torch.randn(16, 16)
        pairs = samples.unsqueeze(1) - heads.unsqueeze(2)
        weight = (levels[None, :, None] - (pairs.detach() < 0).float()).abs()
        loss = pinball + 0.1 * (weight * pairs.abs()).sum(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
