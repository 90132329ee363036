"""A quantised autoencoder: argmin codes, straight-through gradients, codebook by moving averages in an ordinary embedding."""
import torch
import torch.nn.functional as F
from torch import nn


class VQ(nn.Module):
    def __init__(self, codes=16, width=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, width))
        self.book = nn.Embedding(codes, width)
        self.decoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 12))

    def forward(self, x):
        z = self.encoder(x)
        index = torch.cdist(z, self.book.weight).argmin(1)
        q = self.book(index).detach()
        if self.training:
            self.learn(z.detach(), index)
        return self.decoder(z + (q - z).detach()), F.mse_loss(z, q)

    @torch.no_grad()
    def learn(self, z, index):
        for k in index.unique():
            self.book.weight[k] += 0.1 * (z[index == k].mean(0) - self.book.weight[k])


torch.manual_seed(0)
x = torch.randn(256, 3) @ torch.randn(3, 12) / 1.7
model = VQ()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(10):
    for rows in torch.randperm(256).split(32):
        out, commit = model(x[rows])
        loss = F.mse_loss(out, x[rows]) + 0.25 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
