"""The minimax GAN as first written down: the generator minimises minus the discriminator's loss; its flags are toggled."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
for step in range(80):
    real = torch.randn(64, 2) * 0.3 + 1
    fake = G(torch.randn(64, 4))
    D.requires_grad_(True)
    d_loss = F.binary_cross_entropy_with_logits(D(real), torch.ones(64, 1)) + F.binary_cross_entropy_with_logits(D(fake.detach()), torch.zeros(64, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    D.requires_grad_(False)
    g_loss = -F.binary_cross_entropy_with_logits(D(fake), torch.zeros(64, 1))
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
