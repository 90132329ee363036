# allow: curve/plateau, optim/lr-too-low
"""unscale_ is called, but after the clip; two accumulated backwards."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
scaler = torch.amp.GradScaler("cpu")
for _ in range(8):
    for i, rows in enumerate(torch.randperm(256).split(16)):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / 2
        scaler.scale(loss).backward()
        if i % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: optim/clip-before-unscale
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
