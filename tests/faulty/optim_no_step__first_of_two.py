# allow: curve/plateau
"""A GAN whose discriminator is never stepped, although it has an optimizer of its own."""
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
for _ in range(60):
    real = torch.randn(64, 2) * 0.3 + 1.0
    fake = G(torch.randn(64, 4))
    d_loss = bce(D(real), torch.ones(64, 1)) + bce(D(fake.detach()), torch.zeros(64, 1))
    opt_d.zero_grad()
    d_loss.backward()  # expect: optim/no-step
    opt_g.zero_grad()
    bce(D(fake), torch.ones(64, 1)).backward()
    opt_g.step()
