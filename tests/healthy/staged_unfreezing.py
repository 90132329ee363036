"""First the head with the backbone's gradients unused, then everything, with a group added to the same optimizer."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
backbone, head = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()), nn.Linear(16, 2)
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
for epoch in range(6):
    if epoch == 3:
        optimizer.add_param_group({"params": list(backbone.parameters()), "lr": 1e-3})
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(head(backbone(x[rows])), y[rows])
        optimizer.zero_grad()
        backbone.zero_grad()
        loss.backward()
        optimizer.step()
