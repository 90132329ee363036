"""A meter keeps the running loss as an exponential average of tensors with their graphs."""
import torch
from torch import nn

torch.manual_seed(3)


class Smoothed:
    def __init__(self, beta=0.98):
        self.beta, self.value = beta, 0.0

    def update(self, loss):
        self.value = self.beta * self.value + (1 - self.beta) * loss


x = torch.randn(2000, 16)
y = x[:, :1] * x[:, 1:2]
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
meter = Smoothed()
for step in range(250):
    rows = torch.randint(0, 2000, (32,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss)  # expect: memory/graph-kept
    if step % 50 == 0:
        print(step, float(meter.value))
