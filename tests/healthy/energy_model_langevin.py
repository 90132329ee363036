"""Energy based model: persistent Langevin chains, contrastive divergence, energy regulariser."""

import torch
from torch import nn

torch.manual_seed(0)


def sample_data(n):
    c = torch.randint(0, 4, (n,))
    ang = c * 1.5708
    return torch.stack([ang.cos(), ang.sin()], 1) * 2 + 0.1 * torch.randn(n, 2)


E = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(E.parameters(), 1e-3, betas=(0.0, 0.999))
buffer = torch.randn(256, 2)
for step in range(80):
    real = sample_data(64)
    idx = torch.randint(0, 256, (64,))
    x = buffer[idx].clone().requires_grad_(True)
    for p in E.parameters():
        p.requires_grad_(False)
    for _ in range(10):
        (g,) = torch.autograd.grad(E(x).sum(), x)
        x = (x - 0.1 * g + 0.05 * torch.randn_like(x)).detach().requires_grad_(True)
    for p in E.parameters():
        p.requires_grad_(True)
    buffer[idx] = x.detach()
    ep, en = E(real).squeeze(-1), E(x.detach()).squeeze(-1)
    loss = ep.mean() - en.mean() + 0.1 * (ep**2 + en**2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
