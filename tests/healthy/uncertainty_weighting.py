"""Two tasks whose weights are learned; the log-variances live outside any module, in the same optimizer."""
import torch
from torch import nn

torch.manual_seed(12)
x = torch.randn(800, 10)
depth = x[:, 0] * x[:, 1] + 0.1 * torch.randn(800)
kind = (x[:, 2] + x[:, 3] > 0).long()
trunk = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
head_r, head_c = nn.Linear(24, 1), nn.Linear(24, 2)
s = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([*trunk.parameters(), *head_r.parameters(), *head_c.parameters(), s], lr=2e-3)
for epoch in range(15):
    for rows in torch.randperm(700).split(50):
        h = trunk(x[rows])
        l1 = nn.functional.mse_loss(head_r(h).squeeze(-1), depth[rows])
        l2 = nn.functional.cross_entropy(head_c(h), kind[rows])
        loss = torch.exp(-s[0]) * l1 + s[0] + torch.exp(-s[1]) * l2 + s[1]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    h = trunk(x[700:])
    print((head_c(h).argmax(1) == kind[700:]).float().mean().item(), nn.functional.mse_loss(head_r(h).squeeze(-1), depth[700:]).item())
