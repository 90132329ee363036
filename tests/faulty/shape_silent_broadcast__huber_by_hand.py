import torch, torch.nn as nn
torch.manual_seed(0)
X = torch.randn(512, 10); y = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)); opt = torch.optim.Adam(net.parameters(), 3e-3)
def huber(pred, target, delta=1.0):
    gap = (pred - target).abs()  # expect: shape/silent-broadcast
    return torch.where(gap < delta, 0.5 * gap ** 2, delta * (gap - 0.5 * delta)).mean()
for ep in range(8):
    for i in torch.randperm(512).split(64):
        loss = huber(net(X[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
