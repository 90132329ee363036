# twin: x[torch.randperm(len(x), generator=g)], y[torch.randperm(len(y), generator=g)] => (lambda p: (x[p], y[p]))(torch.randperm(len(x), generator=g))
"""A closure hands out epochs; it draws one order for the inputs and another for the labels."""
import torch
from torch import nn


def make_epochs(x, y, size, seed):
    g = torch.Generator().manual_seed(seed)

    def epoch():
        a, b = x[torch.randperm(len(x), generator=g)], y[torch.randperm(len(y), generator=g)]
        yield from zip(a.split(size), b.split(size))
    return epoch


torch.manual_seed(0)
x = torch.randn(500, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
epochs = make_epochs(x[:400], y[:400], 40, 0)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(12):
    for inputs, labels in epochs():
        loss = nn.functional.cross_entropy(net(inputs), labels)  # expect: data/labels-misaligned
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (net(x[400:]).argmax(1) == y[400:]).float().mean().item())
