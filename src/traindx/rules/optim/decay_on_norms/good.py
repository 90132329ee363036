import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2))
matrices = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
