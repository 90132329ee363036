"""Triplet loss with hard negatives mined inside the batch: distances of all pairs, masked, sorted, then averaged."""
import torch
from torch import nn

torch.manual_seed(11)
centres = 1.2 * torch.randn(20, 24)
net = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(150):
    ids = torch.randperm(20)[:8].repeat_interleave(4)
    e = nn.functional.normalize(net(centres[ids] + 0.8 * torch.randn(32, 24)), dim=1)
    distance = (e[:, None] - e[None, :]).pow(2).sum(-1).clamp(min=1e-12).sqrt()
    same = ids[:, None] == ids[None, :]
    hardest_positive = (distance * same).max(1).values
    hardest_negative = distance.masked_fill(same, float("inf")).min(1).values
    loss = torch.relu(hardest_positive - hardest_negative + 0.3).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(step + 1, loss.item())
