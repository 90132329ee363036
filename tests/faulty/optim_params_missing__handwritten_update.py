"""Plain tensors, a hand-written update that forgets one of them."""
import torch

g = torch.Generator().manual_seed(0)
x = torch.randn(256, 6, generator=g)
y = torch.tanh(x @ torch.randn(6, 1, generator=g)) + 0.5
w1 = (0.4 * torch.randn(6, 24, generator=g)).requires_grad_()
b1 = torch.zeros(24, requires_grad=True)
w2 = (0.2 * torch.randn(24, 1, generator=g)).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)


def predict(rows):
    return torch.tanh(rows @ w1 + b1) @ w2 + b2


for step in range(60):
    rows = torch.randint(0, 256, (64,), generator=g)
    loss = ((predict(x[rows]) - y[rows]) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (b1, w2, b2):
            p -= 0.1 * p.grad  # expect: optim/params-missing
    for p in (w1, b1, w2, b2):
        p.grad = None
