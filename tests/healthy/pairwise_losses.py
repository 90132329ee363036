"""Batches meet themselves on purpose: batch-hard triplets, a ranking loss over all pairs, a kernel distance between two sets."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
value = x[:, 0] - x[:, 2]


def batch_hard(z, labels, margin=0.5):
    squares = (z ** 2).sum(1, keepdim=True)
    distance = (squares + squares.squeeze(1) - 2 * z @ z.T).clamp(min=1e-6).sqrt()
    same = labels[:, None] == labels[None, :]
    hardest_positive = (distance * same).amax(1)
    hardest_negative = (distance + 1e3 * same).amin(1)
    return F.relu(hardest_positive - hardest_negative + margin).mean()


def ranking(scores, truth):
    difference = scores.unsqueeze(1) - scores.unsqueeze(0)
    order = torch.sign(truth[:, None] - truth[None, :])
    return F.softplus(-difference * order).mean()


def kernel_distance(a, b):
    def kernel(u, v):
        return torch.exp(-((u[:, None] - v[None]) ** 2).sum(-1) / 4).mean()
    return kernel(a, a) + kernel(b, b) - 2 * kernel(a, b)


body = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
score = nn.Linear(4, 1)
optimizer = torch.optim.Adam([*body.parameters(), *score.parameters()], lr=3e-3)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        z = body(x[rows])
        loss = batch_hard(z, y[rows]) + ranking(score(z).squeeze(1), value[rows]) + 0.1 * kernel_distance(z, torch.randn(32, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
