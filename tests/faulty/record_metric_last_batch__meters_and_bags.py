"""Texts of all lengths in one row of tokens (EmbeddingBag); the meters keep the last batch's value."""
import random
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader


def documents(n, seed):
    rng = random.Random(seed)
    labels = [rng.randrange(3) for _ in range(n)]
    return [([3 * rng.randrange(8) + (y if rng.random() < 0.5 else rng.randrange(3)) for _ in range(rng.randint(5, 25))], y) for y in labels]


def collate(batch):
    starts = torch.tensor([0] + [len(words) for words, _ in batch[:-1]]).cumsum(0)
    return torch.tensor([word for words, _ in batch for word in words]), starts, torch.tensor([y for _, y in batch])


class Meters:
    def __init__(self):
        self.values = defaultdict(float)

    def update(self, **metrics):
        self.values.update(metrics)

    def __str__(self):
        return "  ".join(f"{name} {value:.4f}" for name, value in self.values.items())


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(24, 16), nn.Linear(16, 3)

    def forward(self, words, starts):
        return self.out(self.bag(words, starts))


def run(model, loader, optimizer=None):
    meters = Meters()
    model.train(optimizer is not None)
    with torch.set_grad_enabled(optimizer is not None):
        for words, starts, y in loader:
            out = model(words, starts)
            loss = criterion(out, y)  # expect: record/metric-last-batch
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            meters.update(loss=loss.item(), accuracy=(out.argmax(1) == y).float().mean().item())
    return meters


torch.manual_seed(0)
train = DataLoader(documents(640, 0), 32, shuffle=True, collate_fn=collate)
valid = DataLoader(documents(200, 1), 64, collate_fn=collate)
model, criterion = Bag(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    run(model, train, optimizer)
    print(f"epoch {epoch + 1}: valid {run(model, valid)}")
