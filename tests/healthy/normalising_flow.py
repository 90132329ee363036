"""Affine coupling layers; the loss is a negative log-likelihood that may go below zero, no labels."""
import torch
from torch import nn

torch.manual_seed(8)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, :1], x[:, 1:]
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], 1), s.sum(1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(k % 2 == 1) for k in range(6))
        self.base = torch.distributions.Normal(0.0, 1.0)

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return self.base.log_prob(x).sum(1) + total


def moons(n):
    t = torch.rand(n) * 3.1416
    upper = torch.rand(n) < 0.5
    x = torch.stack([torch.where(upper, t.cos(), 1 - t.cos()), torch.where(upper, t.sin(), 0.5 - t.sin())], 1)
    return (x - torch.tensor([0.5, 0.25])) / 0.6 + 0.05 * torch.randn(n, 2)


flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
for step in range(300):
    loss = -flow.log_prob(moons(128)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(step + 1, loss.item())
