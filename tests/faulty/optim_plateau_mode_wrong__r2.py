# allow: optim/lr-zero, curve/plateau
"""R squared fed to a scheduler in its default mode; the validation loss is seen as well."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 10)
y = torch.sin(x @ torch.randn(10, 1) / 2) + 0.05 * torch.randn(640, 1)
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
for _ in range(16):
    for rows in torch.randperm(480).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x[480:]), y[480:])
        r2 = 1 - loss / y[480:].var()
    scheduler.step(r2.item())  # expect: optim/plateau-mode-wrong
