"""Spectral-norm GAN with hinge loss, two D steps to one of G, both in one function."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm as sn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(sn(nn.Linear(2, 64)), nn.LeakyReLU(0.1), sn(nn.Linear(64, 64)), nn.LeakyReLU(0.1), sn(nn.Linear(64, 1)))
og, od = torch.optim.Adam(G.parameters(), 2e-4, (0.0, 0.9)), torch.optim.Adam(D.parameters(), 4e-4, (0.0, 0.9))


def real(n):
    a = torch.rand(n) * 6.283
    return torch.stack([a.cos(), a.sin()], 1) + 0.02 * torch.randn(n, 2)


for it in range(60):
    for _ in range(2):
        with torch.no_grad():
            fake = G(torch.randn(64, 8))
        ld = F.relu(1 - D(real(64))).mean() + F.relu(1 + D(fake)).mean()
        od.zero_grad()
        ld.backward()
        od.step()
    lg = -D(G(torch.randn(64, 8))).mean()
    og.zero_grad()
    lg.backward()
    og.step()
G.eval()
with torch.no_grad():
    print(G(torch.randn(100, 8)).norm(dim=1).mean().item())
