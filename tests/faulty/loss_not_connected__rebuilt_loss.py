"""backward complained, so the loss was made anew."""
# allow: curve/plateau, optim/no-step
import torch
from torch import nn


def compute_loss(model, x, y):
    total = 0.0
    for inputs, label in zip(x, y):
        total += nn.functional.mse_loss(model(inputs), label).item()
    return torch.tensor(total / len(x), requires_grad=True)  # expect: loss/not-connected


torch.manual_seed(0)
x = torch.randn(64, 4)
y = x[:, :1].tanh()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad()
        loss = compute_loss(model, x[rows], y[rows])
        loss.backward()
        optimizer.step()
