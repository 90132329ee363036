"""Closures: the head is made after the optimizer took its list."""
import torch
from torch import nn


def build():
    body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
    parts = [body]
    optimizer = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=1e-2)  # expect: optim/params-missing
    head = nn.Linear(32, 2)
    parts.append(head)

    def train(x, y):
        loss = nn.functional.cross_entropy(head(body(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
    return train


torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] > 0).long()
train = build()
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        train(x[rows], y[rows])
