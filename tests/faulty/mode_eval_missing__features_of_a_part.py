"""Features for a probe are taken through a method of the encoder while it is still in train mode."""
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.BatchNorm1d(16))
        self.project = nn.Linear(16, 8)

    def embed(self, x):
        return self.body(x)

    def forward(self, x):
        return F.normalize(self.project(self.embed(x)), dim=1)


def pretrain(encoder, x, steps=80):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    encoder.train()
    for _ in range(steps):
        rows = torch.randint(0, len(x), (64,))
        a, b = (encoder(x[rows] + 0.2 * torch.randn(64, 16)) for _ in range(2))
        loss = F.cross_entropy(a @ b.t() / 0.2, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def extract(encoder, x):
    return torch.cat([encoder.embed(part) for part in x.split(40)])  # expect: mode/eval-missing


torch.manual_seed(0)
y = torch.arange(4).repeat_interleave(100)
x = torch.randn(400, 16) + 1.5 * F.one_hot(y, 16)
encoder = Encoder()
pretrain(encoder, x)
features = extract(encoder, x)
probe = nn.Linear(16, 4)
optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)
for _ in range(20):
    for rows in torch.randperm(400).split(50):
        loss = F.cross_entropy(probe(features[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
