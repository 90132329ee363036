"""The trainer's step returns the smoothed loss for display; the smoothing keeps tensors with their graphs."""
import torch
from torch import nn


class SmoothedValue:
    def __init__(self, beta=0.98):
        self.beta, self.value = beta, None

    def update(self, new):
        self.value = new if self.value is None else self.beta * self.value + (1 - self.beta) * new
        return self.value


class Trainer:
    def __init__(self, model):
        self.model, self.smooth = model, SmoothedValue()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self.smooth.update(loss)  # expect: memory/graph-kept


torch.manual_seed(0)
x = torch.randn(2000, 12)
y = (x[:, :1] * x[:, 1:2]).tanh()
trainer = Trainer(nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1)))
for step in range(250):
    rows = torch.randint(0, 2000, (32,))
    shown = trainer.step(x[rows], y[rows])
    if step % 50 == 49:
        print(step + 1, float(shown))
