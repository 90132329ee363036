"""Co-teaching: two networks, each learns the other's small-loss samples; labels are noisy on purpose; the kept share shrinks by epoch."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
x = torch.randn(900, 10)
clean = (x @ torch.randn(10, 4)).argmax(1)
noisy = torch.where(torch.rand(900) < 0.3, torch.randint(0, 4, (900,)), clean)
train = DataLoader(TensorDataset(x[:700], noisy[:700]), 50, shuffle=True)
one, two = (nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 4)) for _ in range(2))
opt_one, opt_two = (torch.optim.Adam(net.parameters(), lr=3e-3) for net in (one, two))
for epoch in range(8):
    keep = 1 - 0.3 * min(1, epoch / 4)
    for a, y in train:
        first, second = one(a), two(a)
        k = int(keep * len(a))
        small_one = F.cross_entropy(first, y, reduction="none").detach().argsort()[:k]
        small_two = F.cross_entropy(second, y, reduction="none").detach().argsort()[:k]
        loss_one = F.cross_entropy(first[small_two], y[small_two])
        loss_two = F.cross_entropy(second[small_one], y[small_one])
        opt_one.zero_grad()
        loss_one.backward()
        opt_one.step()
        opt_two.zero_grad()
        loss_two.backward()
        opt_two.step()
    with torch.no_grad():
        print(epoch, loss_one.item(), [(net(x[700:]).argmax(1) == clean[700:]).float().mean().item() for net in (one, two)])
