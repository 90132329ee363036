"""The closure of LBFGS forgets to clear: each evaluation adds to the last."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 5)
y = torch.sin(x.sum(1, keepdim=True)) + 0.05 * torch.randn(200, 1)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.05, max_iter=5)


def closure():
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(12):
    optimizer.step(closure)  # expect: optim/missing-zero-grad
