"""Hogwild in small: the model's memory is shared, each worker's gradients are borrowed by the shared copy's optimizer (A3C style)."""
import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))


def ensure_shared_grads(local, shared):
    for mine, theirs in zip(local.parameters(), shared.parameters()):
        theirs.grad = mine.grad


def batches(seed, n=60):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n):
        x = torch.randn(32, 6, generator=generator)
        yield x, (x @ rule).argmax(1)


rule = torch.randn(6, 3)
shared = build()
shared.share_memory()
optimizer = torch.optim.SGD(shared.parameters(), lr=0.1)
locals_ = [build() for _ in range(3)]
for together in zip(*(batches(seed) for seed in range(3))):
    for local, (x, y) in zip(locals_, together):
        local.load_state_dict(shared.state_dict())
        loss = nn.functional.cross_entropy(local(x), y)
        optimizer.zero_grad()
        local.zero_grad()
        loss.backward()
        ensure_shared_grads(local, shared)
        optimizer.step()
print(loss.item())
