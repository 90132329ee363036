"""Adapters of low rank beside a frozen, pretrained net; everything is handed to the optimizer."""
import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, inner, rank=2):
        super().__init__()
        self.inner = inner
        self.a = nn.Parameter(0.1 * torch.randn(rank, inner.in_features))
        self.b = nn.Parameter(torch.zeros(inner.out_features, rank))

    def forward(self, x):
        return self.inner(x) + x @ self.a.T @ self.b.T


def fit(model, x, y, optimizer, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
base = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 3))
fit(base, x, x[:, :3].argmax(1), torch.optim.Adam(base.parameters(), lr=5e-3), 5)
base.requires_grad_(False)
model = nn.Sequential(LoRA(base[0]), nn.ReLU(), LoRA(base[2]))
fit(model, x, x[:, 1:4].argmax(1), torch.optim.AdamW(model.parameters(), lr=1e-2), 6)
