"""Metric learning: semi-hard triplets mined in the batch from a distance matrix, sampler with P classes and K samples, retrieval accuracy."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]


class PK(Sampler):
    def __init__(self, labels, p, k, batches):
        self.rows = {c.item(): (labels == c).nonzero().flatten() for c in labels.unique()}
        self.p, self.k, self.batches = p, k, batches

    def __iter__(self):
        for _ in range(self.batches):
            chosen = torch.randperm(len(self.rows))[:self.p].tolist()
            yield torch.cat([self.rows[c][torch.randperm(len(self.rows[c]))[:self.k]] for c in chosen]).tolist()

    def __len__(self):
        return self.batches


def semi_hard(z, labels, margin=0.3):
    distances = torch.cdist(z, z)
    same = labels[:, None] == labels[None]
    eye = torch.eye(len(z), dtype=torch.bool)
    losses = []
    for a, p in (same & ~eye).nonzero().tolist():
        positive = distances[a, p]
        negatives = distances[a][~same[a]]
        semi = negatives[(negatives > positive) & (negatives < positive + margin)]
        if len(semi):
            losses.append(F.relu(positive - semi.min() + margin))
    return torch.stack(losses).mean() if losses else z.sum() * 0


net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_sampler=PK(y[:1400], 6, 4, 25))
for epoch in range(2):
    net.train()
    for xb, yb in loader:
        loss = semi_hard(F.normalize(net(xb), dim=1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        gallery, query = F.normalize(net(x[:1400]), dim=1), F.normalize(net(x[1400:]), dim=1)
        print(epoch, loss.item(), (y[:1400][(query @ gallery.T).argmax(1)] == y[1400:]).float().mean().item())
