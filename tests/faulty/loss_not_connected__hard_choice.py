"""A router picks an expert by argmax; nothing tells the router whether it chose well."""
import torch
from torch import nn


class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.codes = nn.Embedding(4, 8)
        self.out = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        choice = self.router(x).argmax(dim=-1)  # expect: loss/not-connected
        return self.out(x + self.codes(choice))


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Routed()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
