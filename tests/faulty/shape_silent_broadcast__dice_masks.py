# allow: curve/plateau, data/class-imbalance
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 1, 12, 12)
mask = (nn.functional.avg_pool2d(x, 3, 1, 1)[:, 0] > 0.2).float()
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def dice(logits, truth):
    p = logits.sigmoid()
    overlap = (p * truth).sum()  # expect: shape/silent-broadcast
    return 1 - 2 * overlap / (p.sum() + truth.sum() + 1e-6) / len(truth)


for _ in range(6):
    for rows in torch.randperm(96).split(16):
        loss = dice(net(x[rows]), mask[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
