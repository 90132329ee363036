"""A warm-up from 0 and a cosine to 0, per batch, which ends exactly with the training."""
import math

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
total, warm = 8 * 16, 12


def factor(step):
    return step / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for _ in range(8):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
