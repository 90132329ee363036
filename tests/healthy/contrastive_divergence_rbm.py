"""A restricted Boltzmann machine: no autograd at all, updates by hand from two correlation matrices."""
import torch

torch.manual_seed(16)
patterns = (torch.rand(6, 24) > 0.5).float()
data = patterns[torch.randint(0, 6, (600,))]
data = torch.where(torch.rand_like(data) < 0.05, 1 - data, data)
W, a, b = 0.05 * torch.randn(24, 16), torch.zeros(24), torch.zeros(16)
for epoch in range(20):
    error = 0.0
    for rows in torch.randperm(600).split(50):
        v0 = data[rows]
        h0 = torch.sigmoid(v0 @ W + b)
        v1 = torch.sigmoid(torch.bernoulli(h0) @ W.t() + a)
        h1 = torch.sigmoid(v1 @ W + b)
        W += 0.1 * (v0.t() @ h0 - v1.t() @ h1) / len(rows)
        a += 0.1 * (v0 - v1).mean(0)
        b += 0.1 * (h0 - h1).mean(0)
        error += (v0 - v1).pow(2).mean().item()
print(error / 12)
