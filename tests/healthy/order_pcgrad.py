"""Gradient surgery: each loss's gradients are taken and cleared, their combination written back before the step."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
targets = [x[:, :1] + x[:, 1:2], x[:, :1] - x[:, 2:3]]
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        taken = []
        for k, y in enumerate(targets):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rows])[:, k:k + 1], y[rows]).backward()
            taken.append([p.grad.clone() for p in model.parameters()])
        dot = sum((a * b).sum() for a, b in zip(*taken))
        for p, a, b in zip(model.parameters(), *taken):
            p.grad = a + b - (dot.clamp(max=0) / (b.norm() ** 2 + 1e-9)) * b
        optimizer.step()
