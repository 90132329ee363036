"""A tied autoencoder whose weights are averaged into a shadow model that is only evaluated."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 6)
        self.back = nn.Linear(6, 12)
        self.back.weight = nn.Parameter(self.encoder.weight.detach().T.contiguous())
        self.shared = self.back.weight
        self.bias = nn.Parameter(torch.zeros(12))

    def forward(self, x):
        return F.linear(torch.tanh(self.encoder(x)), self.shared, self.bias)


torch.manual_seed(0)
x = torch.randn(256, 4) @ torch.randn(4, 12) / 2
model = Tied()
shadow = copy.deepcopy(model).eval()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        loss = F.mse_loss(model(x[rows]), x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(shadow.parameters(), model.parameters()):
                mine.lerp_(theirs, 0.1)
    with torch.no_grad():
        print(F.mse_loss(shadow(x), x).item())
