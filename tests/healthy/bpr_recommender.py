"""Implicit feedback with BPR: sampled negatives, embeddings with zero-initialised biases, weight decay by hand on the batch's rows, recall@k."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(3)
torch.manual_seed(3)
users, items, dim = 120, 80, 12
taste = rng.normal(size=(users, 4)) @ rng.normal(size=(4, items))
liked = [np.argsort(-row + rng.normal(scale=0.5, size=items))[:12] for row in taste]
train = [(u, i) for u in range(users) for i in liked[u][:9]]
held = [set(liked[u][9:].tolist()) for u in range(users)]


class MF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)


model = MF()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
pairs = np.array(train)
for epoch in range(8):
    rng.shuffle(pairs)
    total = 0.0
    for chunk in np.array_split(pairs, len(pairs) // 90):
        u, pos = torch.from_numpy(chunk).T
        neg = torch.from_numpy(rng.integers(0, items, len(chunk)))
        difference = model(u, pos) - model(u, neg)
        penalty = (model.user(u) ** 2).sum(1).mean() + (model.item(pos) ** 2).sum(1).mean()
        loss = -nn.functional.logsigmoid(difference).mean() + 1e-3 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        scores = model.user.weight @ model.item.weight.T + model.bias.weight.T
        for u, i in train:
            scores[u, i] = -1e9
        top = scores.topk(10).indices
        recall = np.mean([len(held[u] & set(top[u].tolist())) / len(held[u]) for u in range(users)])
    print(epoch, total, round(float(recall), 3))
