"""Contrastive pretraining on rows that are changed at random, or not; after each epoch the features of all of them vote for new ones."""
# needs: sklearn
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

table = load_digits()
x, y = torch.tensor(table.images / 8 - 1, dtype=torch.float32).unsqueeze(1), torch.tensor(table.target)
torch.manual_seed(0)
encoder = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 64))
projector = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=2e-3)


def changed(rows):
    if torch.rand(()) < 0.3:
        return rows
    return torch.roll(rows, tuple(torch.randint(-1, 2, (2,)).tolist()), (2, 3)) * (0.8 + 0.4 * torch.rand(len(rows), 1, 1, 1))


for epoch in range(4):
    encoder.train()
    for part in torch.randperm(1200).split(100):
        views = torch.cat([changed(x[part]), changed(x[part]) + 0.1 * torch.randn_like(x[part])])
        z = F.normalize(projector(encoder(views)), dim=1)
        likeness = (z @ z.T / 0.3).fill_diagonal_(-1e9)
        loss = F.cross_entropy(likeness, torch.cat([torch.arange(100, 200), torch.arange(100)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    encoder.eval()
    with torch.no_grad():
        bank, query = F.normalize(encoder(x), dim=1).split((1200, len(x) - 1200))
        near = (query @ bank.T).topk(5).indices
    print(epoch, loss.item(), (y[:1200][near].mode(1).values == y[1200:]).float().mean().item())
