"""clip_grad_value_ after the step, then zero_grad."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = 3 * x @ torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)  # expect: optim/clip-after-step
        optimizer.zero_grad()
