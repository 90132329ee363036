"""BYOL on toy sensor strips: two augmented views, a slow target, a nearest-neighbour probe."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
CLASSES = 5
base = torch.randn(CLASSES, 64).cumsum(1) / 6


def strips(n):
    y = torch.randint(0, CLASSES, (n,))
    return base[y] * (0.8 + 0.4 * torch.rand(n, 1)) + 0.9 * torch.randn(n, 64), y


def view(x):
    keep = (torch.rand(x.shape) > 0.15).float()
    return x * keep * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.1 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, out=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 12, 5, stride=2), nn.BatchNorm1d(12), nn.ReLU(),
                                  nn.Conv1d(12, 24, 5, stride=2), nn.BatchNorm1d(24), nn.ReLU())
        self.project = nn.Sequential(nn.Flatten(), nn.Dropout(0.4), nn.Linear(24 * 13, out))

    def forward(self, x):
        return self.project(self.conv(x[:, None]))


def predictor(dim=24):
    return nn.Sequential(nn.Linear(dim, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, dim))


@torch.no_grad()
def features(encoder, x):
    encoder.eval()
    return torch.cat([encoder(part) for part in x.split(50)])


def probe(encoder, bank, queries):
    keys, labels = bank
    near = torch.cdist(features(encoder, queries[0]), features(encoder, keys)).topk(5, largest=False).indices
    return (labels[near].mode(1).values == queries[1]).float().mean().item()


online, head = Encoder(), predictor()
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.AdamW([*online.parameters(), *head.parameters()], lr=1e-3, weight_decay=1e-4)
train, test = strips(1500), strips(300)
for epoch in range(6):
    for rows in torch.randperm(len(train[0])).split(100):
        one, two = view(train[0][rows]), view(train[0][rows])
        with torch.no_grad():
            goal_one, goal_two = target(one), target(two)
        loss = 2 - F.cosine_similarity(head(online(one)), goal_two).mean() - F.cosine_similarity(head(online(two)), goal_one).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for t, o in zip(target.parameters(), online.parameters()):
                t.mul_(0.99).add_(o, alpha=0.01)
    if epoch % 2:
        accuracy = probe(online, train, test)
        online.train()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f} neighbours agree {accuracy:.3f}")
