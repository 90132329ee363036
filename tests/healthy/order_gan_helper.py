"""A GAN whose two steps share one helper; D gathers gradients in G's step and clears them late, by its own zero_grad."""
import torch
from torch import nn

torch.manual_seed(0)


def net(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.LeakyReLU(0.2), nn.Linear(32, o))


G, D = net(4, 2), net(2, 1)
optimizers = {"d": torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.99)), "g": torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))}
bce = nn.BCEWithLogitsLoss()


def update(which, loss):
    optimizers[which].zero_grad()
    loss.backward()
    optimizers[which].step()


for _ in range(60):
    real = torch.randn(64, 2) * 0.3 + 1.0
    fake = G(torch.randn(64, 4))
    update("d", bce(D(real), torch.ones(64, 1)) + bce(D(fake.detach()), torch.zeros(64, 1)))
    update("g", bce(D(fake), torch.ones(64, 1)))
