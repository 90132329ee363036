"""LambdaLR is given a function that returns learning rates; it multiplies them with the optimizer's own."""
# allow: curve/plateau
import math

import torch
from torch import nn

PEAK, WARMUP, TOTAL = 1e-3, 20, 240


def schedule(step):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    return PEAK * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (TOTAL - WARMUP)))


torch.manual_seed(0)
x = torch.randn(640, 10)
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)  # expect: optim/lr-too-low
for epoch in range(12):
    for rows in torch.randperm(640).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
# twin: return PEAK * (step => return (step
# twin: return PEAK * 0.5 => return 0.5
