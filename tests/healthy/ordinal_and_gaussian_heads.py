"""Ordinal regression by cumulative logits plus a Gaussian likelihood head with predicted variance (its loss goes below zero)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
x = torch.randn(900, 7)
latent = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 0.2 * torch.randn(900)
grade = torch.bucketize(latent, torch.tensor([-1.5, -0.5, 0.5, 1.5]))
cost = 0.1 * (latent + torch.randn(900) * 0.2 * (1 + x[:, 3].abs()))
loader = DataLoader(TensorDataset(x[:750], grade[:750], cost[:750]), 50, shuffle=True)


class Net(nn.Module):
    def __init__(self, levels=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.score, self.cuts = nn.Linear(48, 1), nn.Parameter(torch.linspace(-1, 1, levels - 1))
        self.mean, self.raw = nn.Linear(48, 1), nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        return self.score(h) - self.cuts, self.mean(h).squeeze(1), nn.functional.softplus(self.raw(h)).squeeze(1) + 1e-4


net = Net()
gaussian = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    net.train()
    for inputs, g, c in loader:
        cumulative, mean, variance = net(inputs)
        passed = (g[:, None] > torch.arange(4)).float()
        loss = nn.functional.binary_cross_entropy_with_logits(cumulative, passed) + 0.2 * gaussian(mean, c, variance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        cumulative, mean, _ = net(x[750:])
        off = ((cumulative > 0).sum(1) - grade[750:]).abs().float().mean()
        print(epoch, loss.item(), off.item(), nn.functional.mse_loss(mean, cost[750:]).item())
