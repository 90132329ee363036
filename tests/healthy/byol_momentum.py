"""Two views, an online net with a predictor, a target net that follows by a moving average; all in one module."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
        self.target = copy.deepcopy(self.online)
        self.predictor = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=1)
        z = F.normalize(self.target(b), dim=1).detach()
        return 2 - 2 * (p * z).sum(1).mean()

    @torch.no_grad()
    def follow(self, tau=0.95):
        for mine, theirs in zip(self.target.parameters(), self.online.parameters()):
            mine.mul_(tau).add_(theirs, alpha=1 - tau)


torch.manual_seed(0)
x = torch.randn(256, 12)
model = BYOL()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
for _ in range(8):
    for rows in torch.randperm(256).split(64):
        a, b = (x[rows] + 0.1 * torch.randn(len(rows), 12) for _ in range(2))
        loss = model(a, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.follow()
