"""Only the generator's optimizer is cleared; the discriminator's gathers everything, the generator's step included."""
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
    (bce(D(real), torch.ones(64, 1)) + bce(D(fake.detach()), torch.zeros(64, 1))).backward()
    opt_d.step()  # expect: optim/grad-not-reset-for-some
    opt_g.zero_grad()
    bce(D(fake), torch.ones(64, 1)).backward()
    opt_g.step()
