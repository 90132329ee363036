"""WGAN with weight clipping: five critic steps for one of the generator, losses of either sign, RMSprop, the generator's samples detached for the critic."""
import torch
from torch import nn

torch.manual_seed(15)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g, opt_d = (torch.optim.RMSprop(m.parameters(), lr=1e-3) for m in (G, D))


def real(n):
    a = torch.randint(0, 4, (n,)) * 1.5708
    return torch.stack([a.cos(), a.sin()], 1) + 0.1 * torch.randn(n, 2)


for it in range(80):
    for p in D.parameters():
        p.requires_grad_(True)
    for _ in range(5):
        D.zero_grad()
        with torch.no_grad():
            fake = G(torch.randn(64, 4))
        d_loss = D(fake).mean() - D(real(64)).mean()
        d_loss.backward()
        opt_d.step()
        for p in D.parameters():
            p.data.clamp_(-0.05, 0.05)
    for p in D.parameters():
        p.requires_grad_(False)
    G.zero_grad()
    g_loss = -D(G(torch.randn(64, 4))).mean()
    g_loss.backward()
    opt_g.step()
    if it % 20 == 0:
        print(it, d_loss.item(), g_loss.item())
