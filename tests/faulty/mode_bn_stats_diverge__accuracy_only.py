# allow: curve/train-val-gap
"""A momentum as another library counts it: the statistics stay as they were made. Validation only counts right answers, no loss."""
# twin: momentum=0.001 => momentum=0.1
import torch
from torch import nn

torch.manual_seed(0)
kind = torch.randint(0, 3, (900,))
x = 2 + 0.7 * torch.randn(3, 12)[kind] + 0.4 * torch.randn(900, 12)
net = nn.Sequential(
    nn.Linear(12, 32),
    nn.BatchNorm1d(32, momentum=0.001),  # expect: mode/bn-stats-diverge
    nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(8):
    net.train()
    for rows in torch.randperm(600).split(40):
        loss = nn.functional.cross_entropy(net(x[rows]), kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = (net(x[600:]).argmax(1) == kind[600:]).float().mean().item()
print(right)
