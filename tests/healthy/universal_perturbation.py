"""A trained classifier is attacked: one perturbation for all inputs, which maximises the loss, bounded."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
delta = torch.zeros(8, requires_grad=True)
for _ in range(3):
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(model(x[rows] + delta), y[rows])
        (gradient,) = torch.autograd.grad(loss, delta)
        with torch.no_grad():
            delta += 0.02 * gradient.sign()
            delta.clamp_(-0.3, 0.3)
