"""Old style: ``p.grad.data.zero_()`` leaves no trace in version counters; a module, updates through ``.data``."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 4)
y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]]) + 0.7 + 0.05 * torch.randn(300, 1)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
for _ in range(120):
    rows = torch.randint(300, (32,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
        p.grad.data.zero_()
