# allow: curve/plateau, loss/constant
"""step() comes before backward(), and zero_grad() in between: each step finds nothing."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(8):
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()  # expect: optim/zero-grad-before-step
        optimizer.step()
        loss.backward()
