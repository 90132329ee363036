# allow: curve/diverging, numeric/nonfinite, numeric/gradient-explosion, optim/lr-too-high, curve/plateau, init/dead-units
"""The loss is scaled, the optimizer steps directly."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu")
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        scaler.scale(loss).backward()
        optimizer.step()  # expect: numeric/scaler-misused
