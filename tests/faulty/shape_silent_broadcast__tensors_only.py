# twin: (x @ w + b).squeeze(1) - y => (x @ w + b) - y
"""No module at all: a linear model of two tensors and an optimizer; predictions [B] against targets [B, 1]."""
import torch

torch.manual_seed(0)
x = torch.randn(256, 5)
y = x @ torch.randn(5, 1) + 0.1 * torch.randn(256, 1)
w, b = torch.zeros(5, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([w, b], lr=5e-2)
for step in range(80):
    error = (x @ w + b).squeeze(1) - y  # expect: shape/silent-broadcast
    loss = (error ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
