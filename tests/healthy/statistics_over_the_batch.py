"""Barlow twins + VICReg variance hinge: statistics over the batch on purpose."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
X = torch.randn(512, 24)
f = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(f.parameters(), 1e-3)
for ep in range(6):
    for i in torch.randperm(512).split(64):
        a, b = f(X[i] + 0.2 * torch.randn(len(i), 24)), f(X[i] + 0.2 * torch.randn(len(i), 24))
        an, bn = (a - a.mean(0)) / (a.std(0) + 1e-4), (b - b.mean(0)) / (b.std(0) + 1e-4)
        c = an.T @ bn / len(i)
        on = (c.diagonal() - 1).pow(2).sum()
        off = c.pow(2).sum() - c.diagonal().pow(2).sum()
        var = F.relu(1 - (a.var(0) + 1e-4).sqrt()).mean()
        loss = on + 0.005 * off + var + 0.1 * F.mse_loss(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
