"""Domain-adversarial training: one optimizer, the sign turned inside the graph; then the two-term form with a minus."""
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -0.3 * gradient


torch.manual_seed(0)
x = torch.randn(256, 8)
domain = torch.randint(0, 2, (256,))
x[:, 7] += 2 * domain
x = (x - x.mean(0)) / x.std(0)
y = (x[:, 0] > 0).long()
body, label, critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 2), nn.Linear(32, 2)
optimizer = torch.optim.Adam([*body.parameters(), *label.parameters(), *critic.parameters()], lr=5e-3)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        h = body(x[rows])
        loss = F.cross_entropy(label(h), y[rows]) + F.cross_entropy(critic(Reverse.apply(h)), domain[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
