"""Features of a trained encoder, kept frozen three ways: by flag, by no_grad, and by handing over only the head."""
import torch
from torch import nn


def fit(forward, x, y, optimizer, epochs=4):
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(forward(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(256, 8)
encoder, first = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 3)
fit(lambda rows: first(encoder(rows)), x, x[:, :3].argmax(1), torch.optim.Adam([*encoder.parameters(), *first.parameters()], lr=5e-3))

only_head = nn.Linear(32, 2)
again = torch.randn(256, 8)
fit(lambda rows: only_head(encoder(rows)), again, (again[:, 0] > 0).long(), torch.optim.Adam(only_head.parameters(), lr=1e-2))


def without_grad(rows):
    with torch.no_grad():
        features = encoder(rows)
    return second(features)


second = nn.Linear(32, 2)
other = torch.randn(256, 8)
fit(without_grad, other, (other[:, 1] > 0).long(), torch.optim.Adam([*encoder.parameters(), *second.parameters()], lr=1e-2))
encoder.requires_grad_(False)
third = nn.Linear(32, 2)
last = torch.randn(256, 8)
fit(lambda rows: third(encoder(rows)), last, (last[:, 2] > 0).long(), torch.optim.Adam([*encoder.parameters(), *third.parameters()], lr=1e-2))
