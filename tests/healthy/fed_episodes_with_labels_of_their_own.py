import torch
from torch import nn

torch.manual_seed(11)
centres = 2 * torch.randn(20, 12)
pool = centres[:, None] + 0.5 * torch.randn(20, 15, 12)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for episode in range(60):
    ways = torch.randperm(20)[:4]
    shots = torch.stack([torch.randperm(15)[:8] for _ in range(4)])
    support = torch.stack([pool[c, s[:3]] for c, s in zip(ways, shots)])
    query = torch.cat([pool[c, s[3:]] for c, s in zip(ways, shots)])
    prototypes = encoder(support.flatten(0, 1)).unflatten(0, (4, 3)).mean(1)
    distances = torch.cdist(encoder(query), prototypes)
    loss = nn.functional.cross_entropy(-distances, torch.arange(4).repeat_interleave(5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
