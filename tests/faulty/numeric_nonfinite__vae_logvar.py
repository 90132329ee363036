import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(512, 10) * torch.linspace(0.2, 2, 10)
data[400] = 900.0


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(10, 32)
        self.mu, self.logvar = nn.Linear(32, 4), nn.Linear(32, 4)
        self.dec = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), 6 * self.logvar(h)
        std = torch.exp(logvar)  # expect: numeric/nonfinite
        z = mu + std * torch.randn_like(mu)
        return self.dec(z), mu, logvar


vae = Encoder()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
for _ in range(10):
    for rows in torch.randperm(512).split(64):
        recon, mu, logvar = vae(data[rows])
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.clamp(max=5).exp()).sum(1).mean()
        loss = (recon - data[rows]).pow(2).sum(1).mean() + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
