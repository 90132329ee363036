import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
centres = torch.randn(20, 16) * 2
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(net.parameters(), 1e-3)
W, S, Q = 5, 3, 5
for ep in range(60):
    cls = torch.randperm(20)[:W]
    x = centres[cls][:, None] + torch.randn(W, S + Q, 16)
    z = net(x.flatten(0, 1)).view(W, S + Q, -1)
    proto = z[:, :S].mean(1)
    q = z[:, S:].reshape(W * Q, -1)
    d = ((q[:, None] - proto[None]) ** 2).sum(-1)
    loss = F.cross_entropy(-d, torch.arange(W).repeat_interleave(Q))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
