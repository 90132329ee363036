"""A variational autoencoder whose KL term goes through Python numbers and back into a tensor."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, wide, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(wide, 48), nn.ReLU(), nn.Linear(48, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, wide))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)), mu, logvar


def kl_by_dimension(mu, logvar):
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp())
    return [each.item() for each in kl.mean(0)]


def objective(model, x):
    decoded, mu, logvar = model(x)
    kl = torch.tensor(kl_by_dimension(mu, logvar)).sum()  # expect: loss/term-without-gradient
    return F.mse_loss(decoded, x, reduction="sum") / len(x) + kl


torch.manual_seed(0)
x = torch.randn(1200, 3) @ torch.randn(3, 20)
model = VAE(20)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    for rows in torch.randperm(1200).split(60):
        loss = objective(model, x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
