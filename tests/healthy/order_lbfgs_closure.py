"""LBFGS: many backwards inside one step, each cleared by the closure; the data in two chunks."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 5)
y = torch.sin(x.sum(1, keepdim=True)) + 0.05 * torch.randn(200, 1)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    total = 0.0
    for rows in torch.arange(200).split(100):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows]) / 2
        loss.backward()
        total = total + loss.detach()
    return total


for _ in range(12):
    optimizer.step(closure)
