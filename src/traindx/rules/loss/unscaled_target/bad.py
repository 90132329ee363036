import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 5)
price = 250_000 + 40_000 * x[:, :1] + 20_000 * x[:, 1:2] + 5_000 * torch.randn(400, 1)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(8):
    for rows in torch.randperm(400).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), price[rows])  # expect: loss/unscaled-target
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# allow: curve/plateau, optim/lr-too-low, numeric/gradient-explosion
