"""A hand-written optimizer leaves its loop at the first parameter without a gradient: those after it never move."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()


class PlainSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    return
                p.add_(p.grad, alpha=-group["lr"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(10, 4)
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.body(x)


net = Net()
optimizer = PlainSGD(net.parameters(), lr=0.1)
for _ in range(10):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # expect: optim/no-step
