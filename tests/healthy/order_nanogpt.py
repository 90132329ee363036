"""The loop of nanoGPT: micro-steps, a scaler that may be off, clip after unscale, zero_grad(set_to_none=True) at the end."""
import math

import torch
from torch import nn

torch.manual_seed(0)
words = torch.tensor([i * i % 17 for i in range(4000)])
model = nn.Sequential(nn.Embedding(17, 24), nn.Flatten(), nn.Linear(24 * 8, 64), nn.ReLU(), nn.Linear(64, 17))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
micro, warm, last = 4, 10, 60


def get_batch():
    at = torch.randint(len(words) - 9, (16,))
    return torch.stack([words[i:i + 8] for i in at]), words[at + 8]


def rate(step):
    if step < warm:
        return 3e-3 * (step + 1) / (warm + 1)
    return 3e-4 + 0.5 * (1 + math.cos(math.pi * (step - warm) / (last - warm))) * 2.7e-3


x, y = get_batch()
for step in range(last):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    for _ in range(micro):
        loss = nn.functional.cross_entropy(model(x), y) / micro
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
