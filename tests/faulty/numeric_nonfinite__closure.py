# twin: (u ** 2).sum(1).sqrt() => ((u ** 2).sum(1) + 1e-12).sqrt()
"""L-BFGS with a closure whose regulariser takes a root that is 0 at the start: its gradient is 0/0."""
import torch

torch.manual_seed(0)
ratings = torch.randn(30, 4) @ torch.randn(4, 20)
u, v = torch.zeros(30, 4, requires_grad=True), (0.1 * torch.randn(20, 4)).requires_grad_()
optimizer = torch.optim.LBFGS([u, v], lr=0.5, max_iter=8)


def closure():
    optimizer.zero_grad()
    loss = ((u @ v.T - ratings) ** 2).mean() + 1e-3 * (u ** 2).sum(1).sqrt().mean()  # expect: numeric/nonfinite
    loss.backward()
    return loss


for step in range(12):
    print(step, optimizer.step(closure).item())
