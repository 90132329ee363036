"""Built in the helper that makes one step."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y = torch.sin(x @ torch.randn(6, 1))
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))


def train_step(rows):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # expect: optim/momentum-buffer-lost
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()


for _ in range(8):
    for rows in torch.randperm(320).split(32):
        train_step(rows)
