"""Two tasks, one backward each on one line, summed on purpose; clipping by value in between would be legal too."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
targets = {"sum": x.sum(1, keepdim=True) / 2.5, "difference": x[:, :1] - x[:, 1:2]}
trunk = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
heads = nn.ModuleDict({name: nn.Linear(32, 1) for name in targets})
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.05)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        for name, y in targets.items():
            nn.functional.mse_loss(heads[name](trunk(x[rows])), y[rows]).backward()
        optimizer.step()
