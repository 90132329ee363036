"""A coordinate network (NeRF in small): positional encoding, random rays, volume rendering along samples, PSNR printed."""
import math

import torch
from torch import nn

torch.manual_seed(9)


def encode(x, bands=6):
    freqs = 2.0 ** torch.arange(bands) * math.pi
    angles = x[..., None] * freqs
    return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)


class Field(nn.Module):
    def __init__(self, inputs=2 * 13, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.density, self.colour = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, points):
        h = self.trunk(encode(points))
        return torch.relu(self.density(h)).squeeze(-1), torch.sigmoid(self.colour(h))


def truth(points):
    inside = (points.norm(dim=-1) < 0.6).float()
    return 8 * inside, torch.stack([0.5 + 0.5 * points[..., 0], 0.5 - 0.5 * points[..., 1], torch.full_like(inside, 0.3)], -1)


def render(field, origins, directions, samples=24, far=3.0):
    t = torch.linspace(0, far, samples)
    t = t + torch.rand(len(origins), samples) * far / samples
    points = origins[:, None] + t[..., None] * directions[:, None]
    sigma, colour = field(points)
    delta = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], 1)
    alpha = 1 - torch.exp(-sigma * delta)
    transmittance = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    return ((alpha * transmittance)[..., None] * colour).sum(1)


def rays(n):
    angle = torch.rand(n) * 2 * math.pi
    origins = 1.5 * torch.stack([angle.cos(), angle.sin()], -1)
    aim = -origins + 0.5 * torch.randn(n, 2)
    return origins, aim / aim.norm(dim=-1, keepdim=True)


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
for step in range(200):
    origins, directions = rays(128)
    with torch.no_grad():
        wanted = render(truth, origins, directions)
    loss = ((render(field, origins, directions) - wanted) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    if step % 50 == 0:
        print(step, f"PSNR {-10 * math.log10(loss.item()):.1f}")
