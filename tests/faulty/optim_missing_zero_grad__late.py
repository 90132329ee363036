"""Right at first; the second phase of the training forgets it."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(320, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.MSELoss()


def warm_up(rows):
    optimizer.zero_grad()
    criterion(model(x[rows]), y[rows]).backward()
    optimizer.step()


def refine(rows):
    criterion(model(x[rows]), y[rows]).backward()
    optimizer.step()  # expect: optim/missing-zero-grad


for epoch in range(10):
    for rows in torch.randperm(320).split(32):
        (warm_up if epoch < 6 else refine)(rows)
