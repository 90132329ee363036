"""Cox partial likelihood: log-sum-exp over the risk set couples the samples of a batch on purpose; loss by hand."""
import torch
from torch import nn

torch.manual_seed(7)
x = torch.randn(600, 8)
risk = x[:, 0] - 0.5 * x[:, 1] ** 2
time = torch.distributions.Exponential(risk.exp()).sample()
event = (torch.rand(600) < 0.7).float()
x_tr, x_va = x[:480], x[480:]
net = nn.Sequential(nn.Linear(8, 32), nn.SELU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)


def partial_likelihood(score, t, e):
    order = t.argsort(descending=True)
    score, e = score[order], e[order]
    return -((score - torch.logcumsumexp(score, 0)) * e).sum() / e.sum()


def concordance(score, t):
    earlier = t[:, None] < t[None, :]
    return ((score[:, None] > score[None, :]) & earlier).sum() / earlier.sum()


for epoch in range(30):
    for rows in torch.randperm(480).split(120):
        loss = partial_likelihood(net(x_tr[rows]).squeeze(-1), time[rows], event[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            print(epoch + 1, loss.item(), concordance(net(x_va).squeeze(-1), time[480:]).item())
