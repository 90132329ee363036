"""Graph attention on two random communities, full batch, masks for train and validation."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
n = 60
y = torch.arange(n) % 2
p = torch.where(y[:, None] == y[None, :], 0.3, 0.03)
A = (torch.rand(n, n) < p).float().triu(1)
A = A + A.T + torch.eye(n)
X = torch.eye(n)
perm = torch.randperm(n)
train, val = perm[:20], perm[20:]


class GAT(nn.Module):
    def __init__(s, i, o, heads=2):
        super().__init__()
        s.h = heads
        s.W = nn.Linear(i, o * heads, bias=False)
        s.a = nn.Parameter(torch.empty(2, heads, o))
        nn.init.xavier_uniform_(s.a)

    def forward(s, x, A):
        h = s.W(x).view(len(x), s.h, -1)
        e = F.leaky_relu((h * s.a[0]).sum(-1)[:, None] + (h * s.a[1]).sum(-1)[None], 0.2)
        e = e.masked_fill(A[..., None] == 0, float("-inf"))
        return torch.einsum("ijh,jhd->ihd", e.softmax(1), h).flatten(1)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = GAT(n, 8)
        s.c2 = GAT(16, 2, 1)

    def forward(s, x, A):
        x = F.dropout(x, 0.4, training=s.training)
        return s.c2(F.elu(s.c1(x, A)), A)


net = Net()
opt = torch.optim.Adam(net.parameters(), 0.01, weight_decay=5e-4)
for epoch in range(60):
    net.train()
    opt.zero_grad()
    loss = F.cross_entropy(net(X, A)[train], y[train])
    loss.backward()
    opt.step()
    if epoch % 10 == 9:
        net.eval()
        with torch.no_grad():
            out = net(X, A)
        print(epoch, loss.item(), (out[val].argmax(1) == y[val]).float().mean().item())
