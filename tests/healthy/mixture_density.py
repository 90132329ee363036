"""A mixture density network: negative log likelihood by logsumexp, which becomes negative; log-sigma clamped; two-valued inverse problem."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
t = torch.rand(1000, 1)
x = t + 0.3 * torch.sin(2 * math.pi * t) + 0.02 * torch.randn_like(t)
loader = DataLoader(TensorDataset(x, t), batch_size=100, shuffle=True)


class MDN(nn.Module):
    def __init__(self, k=5):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.pi, self.mu, self.log_sigma = nn.Linear(32, k), nn.Linear(32, k), nn.Linear(32, k)

    def forward(self, x):
        h = self.hidden(x)
        return torch.log_softmax(self.pi(h), 1), self.mu(h), self.log_sigma(h).clamp(-5, 2)


def nll(y, log_pi, mu, log_sigma):
    z = (y - mu) / log_sigma.exp()
    log_prob = -0.5 * z ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_pi + log_prob, dim=1).mean()


model = MDN()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    for inputs, target in loader:
        loss = nll(target, *model(inputs))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
