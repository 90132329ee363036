"""Sparse mixture of experts: top-2 gating with noise, a load-balancing term; experts that get no row in a batch have no gradient then."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)


class MoE(nn.Module):
    def __init__(self, dim, experts=6, k=2):
        super().__init__()
        self.k = k
        self.gate, self.noise = nn.Linear(dim, experts, bias=False), nn.Linear(dim, experts, bias=False)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.noise.weight)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim)) for _ in range(experts)])

    def forward(self, x):
        scores = self.gate(x)
        if self.training:
            scores = scores + torch.randn_like(scores) * F.softplus(self.noise(x))
        top, chosen = scores.topk(self.k, dim=1)
        weights = top.softmax(1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows, place = (chosen == e).nonzero(as_tuple=True)
            if len(rows):
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, place, None])
        importance = torch.zeros_like(scores).scatter(1, chosen, weights).sum(0)
        return out, importance.var() / (importance.mean() ** 2 + 1e-10)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.moe, self.out = nn.Linear(8, 16), MoE(16), nn.Linear(16, 3)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        mixed, balance = self.moe(h)
        return self.out(h + mixed), balance


x = torch.randn(1200, 8)
y = ((x[:, 0] > 0).long() + (x[:, 1] * x[:, 2] > 0).long())
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
for epoch in range(5):
    net.train()
    for rows in torch.randperm(1000).split(50):
        logits, balance = net(x[rows])
        loss = F.cross_entropy(logits, y[rows]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, (net(x[1000:])[0].argmax(1) == y[1000:]).float().mean().item())
