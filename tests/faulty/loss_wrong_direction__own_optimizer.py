"""An Optimizer subclass whose step adds."""
# allow: curve/diverging
import torch
from torch import nn


class HeavyBall(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                v = state.setdefault("v", torch.zeros_like(p))
                v.mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                p.add_(v, alpha=group["lr"])  # expect: loss/wrong-direction


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = HeavyBall(model.parameters(), lr=0.01)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
