# allow: curve/plateau, loss/constant
"""By hand, and the gradients are zeroed before the update."""
import torch

torch.manual_seed(0)
x = torch.randn(300, 4)
y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0]) + 0.7 + 0.05 * torch.randn(300)
w = torch.zeros(4, requires_grad=True)
b = torch.zeros((), requires_grad=True)
for _ in range(60):
    rows = torch.randint(300, (32,))
    loss = ((x[rows] @ w + b - y[rows]) ** 2).mean()
    loss.backward()
    for p in (w, b):
        p.grad.zero_()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad  # expect: optim/zero-grad-before-step
