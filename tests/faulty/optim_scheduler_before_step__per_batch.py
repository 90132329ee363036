"""Between backward and step, for every batch."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=80)
for _ in range(8):
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        scheduler.step()  # expect: optim/scheduler-before-step
        optimizer.step()
