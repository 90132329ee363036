# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = torch.poisson(torch.exp(0.5 + 0.6 * x[:, 0]))
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.PoissonNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def closure_for(rows):
    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])  # expect: shape/loss-target-mismatch
        loss.backward()
        return loss
    return closure


for _ in range(6):
    for rows in torch.randperm(256).split(32):
        optimizer.step(closure_for(rows))
