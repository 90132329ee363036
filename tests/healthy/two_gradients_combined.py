"""MGDA-like: two gradients by autograd.grad, combined by hand into p.grad."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
X = torch.randn(512, 10)
y1, y2 = X[:, :3].sum(1, keepdim=True), (X[:, 2] > 0).long()
body, a, b = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 1), nn.Linear(32, 2)
opt = torch.optim.SGD([*body.parameters(), *a.parameters(), *b.parameters()], 0.05, momentum=0.9)
shared = list(body.parameters())
for ep in range(8):
    for i in torch.randperm(512).split(64):
        h = body(X[i])
        l1, l2 = F.mse_loss(a(h), y1[i]), F.cross_entropy(b(h), y2[i])
        g1 = torch.autograd.grad(l1, shared, retain_graph=True)
        g2 = torch.autograd.grad(l2, shared, retain_graph=True)
        d = sum((u * v).sum() for u, v in zip(g1, g2))
        n1 = sum((u * u).sum() for u in g1)
        n2 = sum((v * v).sum() for v in g2)
        w = ((n2 - d) / (n1 + n2 - 2 * d + 1e-8)).clamp(0, 1)
        opt.zero_grad()
        (l1 + l2).backward()
        for p, u, v in zip(shared, g1, g2):
            p.grad = w * u + (1 - w) * v
        opt.step()
print(l1.item(), l2.item())
