"""``zero_`` before each backward, update under no_grad."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 4)
y = (x[:, 0] - x[:, 1] > 0).long()
model = nn.Linear(4, 2)
for _ in range(6):
    for rows in torch.randperm(300).split(30):
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.2 * p.grad
