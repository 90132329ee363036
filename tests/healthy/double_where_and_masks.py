"""-inf in masks, a safe double where, sqrt with eps, log of a clamped probability."""
import torch
from torch import nn

torch.manual_seed(0)
N, T, D = 256, 6, 8
x = torch.randn(N, T, D)
x[40] = 0.0
keep = torch.arange(T)[None] < torch.randint(1, T + 1, (N, 1))
y = ((x * keep.unsqueeze(-1)).sum((1, 2)) > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score, self.out = nn.Linear(D, 16, bias=False), nn.Linear(16, 1), nn.Linear(32, 2)

    def forward(self, x, keep):
        h = self.embed(x)
        weights = self.score(h).squeeze(-1).masked_fill(~keep, float("-inf")).softmax(1).unsqueeze(-1)
        mean = (weights * h).sum(1)
        energy = (weights * h ** 2).sum(1)
        safe = torch.where(energy > 0, energy, torch.ones_like(energy))
        length = torch.where(energy > 0, safe.sqrt(), torch.zeros_like(energy))
        return self.out(torch.cat([mean, length + (energy + 1e-6).sqrt()], 1))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(8):
    for rows in torch.randperm(N).split(32):
        p = net(x[rows], keep[rows]).softmax(1)
        loss = -p[torch.arange(len(rows)), y[rows]].clamp_min(1e-7).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
