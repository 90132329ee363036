"""Permutation-invariant sets of different sizes: masks, attention pooling with a learned query, -inf on blanks, a pointer that names the largest element."""
import random

import torch
from torch import nn
from torch.nn import functional as F

random.seed(12)
torch.manual_seed(12)


def batch(n=48):
    sizes = [random.randint(2, 9) for _ in range(n)]
    width = max(sizes)
    values = torch.randn(n, width, 3)
    blank = torch.arange(width)[None] >= torch.tensor(sizes)[:, None]
    key = values.norm(dim=2).masked_fill(blank, -1)
    return values.masked_fill(blank[..., None], 0), blank, key.argmax(1)


class Pointer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(3, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.attend = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.point = nn.Linear(dim, dim)

    def forward(self, values, blank):
        h = self.embed(values)
        mixed, _ = self.attend(h, h, h, key_padding_mask=blank)
        h = h + mixed
        query = self.query.expand(len(h), -1, -1)
        pooled, _ = self.attend(query, h, h, key_padding_mask=blank)
        scores = (self.point(h) * pooled).sum(-1) / h.size(-1) ** 0.5
        return scores.masked_fill(blank, float("-inf"))


model = Pointer()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(200):
    values, blank, answer = batch()
    loss = F.cross_entropy(model(values, blank), answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            values, blank, answer = batch(200)
            print(step, loss.item(), (model(values, blank).argmax(1) == answer).float().mean().item())
