"""Bayes by backprop: weights drawn anew in each forward, KL divided by the number of batches, predictions averaged over draws."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)


class BayesLinear(nn.Module):
    def __init__(self, inputs, outputs, prior=1.0):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(outputs, inputs) / math.sqrt(inputs))
        self.rho = nn.Parameter(torch.full((outputs, inputs), -4.0))
        self.bias_mu, self.bias_rho = nn.Parameter(torch.zeros(outputs)), nn.Parameter(torch.full((outputs,), -4.0))
        self.prior = prior

    def forward(self, x):
        sigma, bias_sigma = F.softplus(self.rho), F.softplus(self.bias_rho)
        weight = self.mu + sigma * torch.randn_like(sigma)
        bias = self.bias_mu + bias_sigma * torch.randn_like(bias_sigma)
        return F.linear(x, weight, bias)

    def kl(self):
        total = 0.0
        for mu, rho in ((self.mu, self.rho), (self.bias_mu, self.bias_rho)):
            sigma = F.softplus(rho)
            total = total + (math.log(self.prior) - sigma.log() + (sigma ** 2 + mu ** 2) / (2 * self.prior ** 2) - 0.5).sum()
        return total


net = nn.Sequential(BayesLinear(1, 24), nn.Tanh(), BayesLinear(24, 1))
x = torch.cat([torch.rand(150, 1) * 0.4, 0.6 + torch.rand(150, 1) * 0.4])
y = torch.sin(12 * x) + 0.1 * torch.randn_like(x)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(40):
    for rows in torch.randperm(300).split(50):
        likelihood = 0.5 * ((net(x[rows]) - y[rows]) ** 2 / 0.01).sum(1).mean() * 300
        loss = (likelihood + sum(m.kl() for m in net if isinstance(m, BayesLinear)) / 6) / 300
        opt.zero_grad()
        loss.backward()
        opt.step()
grid = torch.linspace(0, 1, 20)[:, None]
with torch.no_grad():
    draws = torch.stack([net(grid) for _ in range(20)])
print(loss.item(), draws.std(0).flatten())
