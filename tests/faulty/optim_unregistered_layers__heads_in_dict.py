"""Two tasks, one head each, in a plain dict; the trunk is registered."""
import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.heads = {}
        for name, width in tasks.items():
            self.heads[name] = nn.Linear(32, width)  # expect: optim/unregistered-layers

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


torch.manual_seed(0)
x = torch.randn(256, 8)
kind, size = x[:, :3].argmax(1), x[:, 3:4].tanh()
model = MultiTask({"kind": 3, "size": 1})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        out = model(x[rows])
        loss = nn.functional.cross_entropy(out["kind"], kind[rows]) + nn.functional.mse_loss(out["size"], size[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
