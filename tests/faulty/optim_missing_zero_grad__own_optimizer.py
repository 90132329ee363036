"""An optimizer of one's own that knows nothing of torch.optim; nobody clears."""
import torch
from torch import nn

torch.manual_seed(0)


class Descent:
    def __init__(self, parameters, lr):
        self.parameters, self.lr = list(parameters), lr

    def step(self):
        for p in self.parameters:
            p.data.add_(p.grad.data, alpha=-self.lr)  # expect: optim/missing-zero-grad


x = torch.randn(320, 6)
y = (x[:, 0] > x[:, 1]).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = Descent(model.parameters(), lr=0.05)
for _ in range(8):
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
