# allow: optim/lr-zero, curve/plateau
"""mode max, fed the validation loss."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 10)
y = torch.sin(x @ torch.randn(10, 1) / 2) + 0.05 * torch.randn(640, 1)
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.2, patience=1)  # expect: optim/plateau-mode-wrong
for _ in range(14):
    for rows in torch.randperm(480).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        scheduler.step(nn.functional.mse_loss(model(x[480:]), y[480:]).item())
