"""Learned compression of spectra: encoder, quantised code, decoder."""
# twin: return torch.round(z.clamp(-1, 1) * levels) / levels => return z + (torch.round(z.clamp(-1, 1) * levels) / levels - z).detach()
import torch
from torch import nn

torch.manual_seed(0)


class Codec(nn.Module):
    def __init__(self, bands=48, code=6):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(bands, 64), nn.ReLU(), nn.Linear(64, code), nn.Tanh())
        self.decode = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, bands))

    def quantise(self, z, levels=4):
        return torch.round(z.clamp(-1, 1) * levels) / levels  # expect: loss/not-connected

    def forward(self, x):
        return self.decode(self.quantise(self.encode(x)))


def spectra(n):
    t = torch.linspace(0, 1, 48)
    centre, width = torch.rand(n, 2, 1), 0.05 + 0.1 * torch.rand(n, 2, 1)
    peaks = torch.exp(-((t - centre) / width) ** 2).sum(1)
    return (peaks - 0.25) / 0.4 + 0.05 * torch.randn(n, 48)


train, valid = spectra(4000), spectra(500)
codec = Codec()
optimizer = torch.optim.Adam(codec.parameters(), lr=2e-3)
for epoch in range(4):
    for x in train[torch.randperm(len(train))].split(100):
        loss = nn.functional.mse_loss(codec(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch} distortion {nn.functional.mse_loss(codec(valid), valid):.4f}")
