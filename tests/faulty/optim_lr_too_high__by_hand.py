"""Gradient descent on a least-squares problem, twice the largest stable step."""
# allow: curve/diverging, curve/spike, numeric/gradient-explosion
import torch

g = torch.Generator().manual_seed(0)
x = torch.randn(200, 12, generator=g)
y = x @ torch.randn(12, generator=g)
w = (0.1 * torch.randn(12, generator=g)).requires_grad_()
for step in range(40):
    loss = (x @ w - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 1.1 * w.grad  # expect: optim/lr-too-high
        w.grad.zero_()
