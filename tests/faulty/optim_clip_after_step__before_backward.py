# allow: curve/oscillating
"""The clip stands before the backward, on gradients that zero_grad has just cleared."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = 3 * x @ torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: optim/clip-after-step
        loss.backward()
        optimizer.step()
