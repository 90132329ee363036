# allow: curve/plateau, numeric/unstable-op, init/dead-units
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def binary_loss(p, target):
    p = p.clamp(1e-6, 1 - 1e-6)  # expect: loss/logits-as-probabilities
    return -(target * p.log() + (1 - target) * (1 - p).log()).mean()


for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = binary_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
