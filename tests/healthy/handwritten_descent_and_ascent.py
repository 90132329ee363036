"""Plain tensors: squared error by p.data -= lr * g, then a log-likelihood that is climbed on purpose."""
import torch

g = torch.Generator().manual_seed(0)
x = torch.randn(256, 5, generator=g)
y = x @ torch.randn(5, generator=g) + 0.1 * torch.randn(256, generator=g)
w = torch.zeros(5, requires_grad=True)
for step in range(40):
    rows = torch.randint(0, 256, (64,), generator=g)
    loss = (y[rows] - x[rows] @ w).pow(2).mean()
    loss.backward()
    w.data -= 0.05 * w.grad
    w.grad = None

labels = (x @ torch.randn(5, 3, generator=g)).argmax(1)
v = (0.1 * torch.randn(5, 3, generator=g)).requires_grad_()
for step in range(40):
    log_likelihood = (x @ v).log_softmax(1)[torch.arange(256), labels].mean()
    log_likelihood.backward()
    with torch.no_grad():
        v += 0.5 * v.grad
    v.grad = None
