"""One loop: the auxiliary term joins after a warm-up of 50 steps."""
import torch, torch.nn as nn
torch.manual_seed(0)
X = torch.randn(512, 10); y = X[:, :1] + 0.5; w = torch.rand(512)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)); opt = torch.optim.Adam(net.parameters(), 3e-3)
step = 0
for ep in range(14):
    for i in torch.randperm(512).split(64):
        err = (net(X[i]) - y[i]) ** 2
        if step < 50:
            loss = err.mean()
        else:
            loss = (err * w[i]).mean()  # expect: shape/silent-broadcast
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
