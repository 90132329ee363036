"""Two views of each sample: cross-entropy over the similarities of a batch, in both directions."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
prototypes = torch.randn(24, 16)


def views(n):
    base = prototypes[torch.randint(24, (n,))] + 0.6 * torch.randn(n, 16)
    return base + 0.2 * torch.randn(n, 16), base + 0.2 * torch.randn(n, 16)


encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
for _ in range(60):
    a, b = views(32)
    za, zb = F.normalize(encoder(a), dim=-1), F.normalize(encoder(b), dim=-1)
    logits = za @ zb.T / 0.2
    same = torch.arange(32)
    loss = (F.cross_entropy(logits, same) - F.log_softmax(logits, dim=0).diagonal().mean()) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
