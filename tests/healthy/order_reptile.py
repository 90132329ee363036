"""Reptile: a copy and an optimizer of its own for every task, the same optimizer line again and again."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
for _ in range(15):
    phase = torch.rand(1) * 3
    learner = copy.deepcopy(model)
    optimizer = torch.optim.Adam(learner.parameters(), lr=5e-3)
    for _ in range(6):
        x = torch.rand(20, 1) * 6 - 3
        loss = nn.functional.mse_loss(learner(x), torch.sin(x + phase))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for p, q in zip(model.parameters(), learner.parameters()):
            p.lerp_(q, 0.2)
