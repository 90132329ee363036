"""Gradient penalty through autograd.grad, five critic steps for one of the generator, weights of neither shared."""
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
C = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_c = torch.optim.Adam(C.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
for _ in range(20):
    for _ in range(5):
        real, fake = torch.randn(64, 2) * 0.3 + 1.0, G(torch.randn(64, 4)).detach()
        mix = torch.rand(64, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        slope, = torch.autograd.grad(C(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        opt_c.zero_grad()
        (C(fake).mean() - C(real).mean() + 10 * penalty).backward()
        opt_c.step()
    opt_g.zero_grad()
    (-C(G(torch.randn(64, 4))).mean()).backward()
    opt_g.step()
