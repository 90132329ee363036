"""A weight kept as a plain tensor attribute."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = nn.Linear(width, width)
        self.query = torch.randn(width, requires_grad=True)  # expect: optim/unregistered-layers
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        weights = torch.softmax(torch.tanh(self.key(x)) @ self.query, dim=1)
        return self.out((weights[:, :, None] * x).sum(1))


torch.manual_seed(0)
x = torch.randn(256, 5, 8)
y = (x[:, :, 0].amax(1) > 1.2).long()
model = Attention(8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
