"""Sharpness-aware minimisation: each step climbs first, on purpose, and calls the inner optimizer's step."""
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]).norm()
        for g in self.param_groups:
            for p in g["params"]:
                e = p.grad * (0.05 / (norm + 1e-12))
                p.add_(e)
                self.state[p]["e"] = e
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.climb()
        closure()
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()
        self.zero_grad()


torch.manual_seed(2)
x = torch.randn(512, 12)
y = (x[:, :3].prod(1) > 0).long()
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for epoch in range(25):
    total = 0.0
    for rows in torch.randperm(512).split(64):
        def closure():
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            return loss
        total += closure().item() * len(rows)
        optimizer.step(closure)
print(total / 512)
