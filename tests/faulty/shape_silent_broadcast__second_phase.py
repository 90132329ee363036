"""Phase 1 pretrains a classifier; phase 2 (from step 64) fits a regression head, [B, 1] against [B]."""
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
X = torch.randn(512, 10); yc = (X[:, 0] > 0).long(); yr = X[:, 1] - X[:, 2] * X[:, 3]
body, clf, reg = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 2), nn.Linear(32, 1)
opt = torch.optim.Adam([*body.parameters(), *clf.parameters()], 3e-3)
for ep in range(8):
    for i in torch.randperm(512).split(64):
        loss = F.cross_entropy(clf(body(X[i])), yc[i])
        opt.zero_grad(); loss.backward(); opt.step()
opt2 = torch.optim.Adam([*body.parameters(), *reg.parameters()], 3e-3)
for ep in range(8):
    for i in torch.randperm(512).split(64):
        pred = reg(body(X[i]))
        loss = (pred - yr[i]).pow(2).mean()  # expect: shape/silent-broadcast
        opt2.zero_grad()
        loss.backward()
        opt2.step()
print(loss.item())
