"""Randomness in eval mode that is meant: a VAE's noise, Monte Carlo dropout asked for, a guarded hand-written mask."""
import torch
from torch import nn
from torch.nn import functional as F


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.spread, self.decode = nn.Linear(8, 16), nn.Linear(16, 4), nn.Linear(4, 8)
        self.mean = nn.Linear(16, 4)

    def forward(self, x, draw=False):
        h = torch.tanh(self.encode(x))
        if self.training:
            h = h * (torch.rand_like(h) < 0.9).float() / 0.9
        if draw:
            h = F.dropout(h, 0.1, training=True)
        mean, spread = self.mean(h), F.softplus(self.spread(h))
        return self.decode(mean + spread * torch.randn_like(mean)), mean, spread


torch.manual_seed(12)
x = torch.randn(360, 3) @ torch.randn(3, 8) / 3**0.5
model = Noisy()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(300).split(30):
        out, mean, spread = model(x[rows])
        kl = 0.5 * (mean**2 + spread**2 - 1 - 2 * spread.log()).sum(1).mean()
        loss = F.mse_loss(out, x[rows], reduction="none").sum(1).mean() + 0.1 * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        held_out = x[300:]
        print(epoch, F.mse_loss(model(held_out)[0], held_out).item())
        draws = torch.stack([model(held_out, draw=True)[0] for _ in range(6)])
        print("spread", draws.std(0).mean().item())
