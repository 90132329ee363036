"""A helper that clips, called by a trainer class before the backward: it sees the gradients of the step before, which were cleared."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] > 0).long()


def limit(model, norm=1.0):
    total = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters() if p.grad is not None) + 1e-12)
    if total > norm:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(norm / total)


net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # expect: optim/clip-after-step
