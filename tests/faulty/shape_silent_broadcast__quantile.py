import torch, torch.nn as nn
torch.manual_seed(0)
X = torch.randn(512, 10); y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)); opt = torch.optim.Adam(net.parameters(), 3e-3)
for ep in range(8):
    for i in torch.randperm(512).split(64):
        e = y[i] - net(X[i])  # expect: shape/silent-broadcast
        loss = torch.where(e >= 0, 0.9 * e, -0.1 * e).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
