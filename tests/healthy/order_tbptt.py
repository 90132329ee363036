"""Truncated BPTT: the state is carried and detached, a step for every chunk, a warm-up scheduler for every step."""
import torch
from torch import nn

torch.manual_seed(0)
wave = torch.sin(torch.arange(1201) * 0.2).view(1, -1, 1).repeat(8, 1, 1) + 0.05 * torch.randn(8, 1201, 1)
cell, head = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)
parameters = [*cell.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=5e-3)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
for _ in range(3):
    state = None
    for at in range(0, 1200, 60):
        out, state = cell(wave[:, at:at + 60], state)
        state = state.detach()
        loss = nn.functional.mse_loss(head(out), wave[:, at + 1:at + 61])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        warm.step()
