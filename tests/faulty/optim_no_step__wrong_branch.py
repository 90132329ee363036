# allow: curve/plateau, loss/constant
"""The step waits for a window that is longer than an epoch, and the counter starts anew with each."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(8):
    for i, rows in enumerate(torch.randperm(320).split(32)):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()  # expect: optim/no-step
        if (i + 1) % 16 == 0:
            optimizer.step()
            optimizer.zero_grad()
