"""A smoothness penalty that is added as a number."""
import torch
from torch import nn

torch.manual_seed(0)
t = torch.linspace(-1, 1, 128)[:, None]
y = torch.sin(4 * t) + 0.1 * torch.randn(128, 1)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def roughness(curve):
    return (curve[2:] - 2 * curve[1:-1] + curve[:-2]).pow(2).mean()


for _ in range(60):
    curve = model(t)
    penalty = roughness(curve).item()  # expect: loss/term-without-gradient
    loss = nn.functional.mse_loss(curve, y) + 100 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
