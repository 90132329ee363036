"""Molecule-like graphs in one block-diagonal batch: scatter sums over edges, mean pooling by graph, graphs of different sizes."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(9)
torch.manual_seed(9)


def graph():
    n = random.randint(4, 12)
    edges = [(i, random.randrange(i)) for i in range(1, n)] + [(random.randrange(n), random.randrange(n)) for _ in range(random.randint(0, 6))]
    kinds = torch.randint(0, 4, (n,))
    degree = torch.zeros(n)
    for a, b in edges:
        degree[a] += 1
        degree[b] += 1
    return kinds, torch.tensor(edges + [(b, a) for a, b in edges]).T, ((degree * (kinds == 2)).sum() - 2) / 3


def collate(rows):
    shift, kinds, edges, owner = 0, [], [], []
    for g, (k, e, _) in enumerate(rows):
        kinds.append(k)
        edges.append(e + shift)
        owner.append(torch.full((len(k),), g))
        shift += len(k)
    return torch.cat(kinds), torch.cat(edges, 1), torch.cat(owner), torch.stack([y for *_, y in rows])


class GIN(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(4, dim)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim)) for _ in range(2)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(dim) for _ in range(2)])
        self.out = nn.Linear(dim, 1)

    def forward(self, kinds, edges, owner, graphs):
        h = self.embed(kinds)
        for layer, norm in zip(self.layers, self.norms):
            h = torch.relu(norm(layer(h + torch.zeros_like(h).index_add(0, edges[1], h[edges[0]]))))
        return self.out(torch.zeros(graphs, h.size(1)).index_add(0, owner, h)).squeeze(1)


data = [graph() for _ in range(500)]
train, test = DataLoader(data[:400], 25, shuffle=True, collate_fn=collate), DataLoader(data[400:], 50, collate_fn=collate)
model = GIN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for kinds, edges, owner, y in train:
        loss = nn.functional.mse_loss(model(kinds, edges, owner, len(y)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(((model(k, e, o, len(y)) - y) ** 2).sum().item() for k, e, o, y in test) / 100)
