"""A network that predicts a Normal; the mean log-density, guarded by a clamp, is minimised."""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
x = torch.randn(640, 3)
y = torch.tanh(x[:, 0]) + 0.1 * torch.randn(640)


class DensityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.loc, self.scale = nn.Sequential(nn.Linear(3, 32), nn.Tanh()), nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, x):
        h = self.trunk(x)
        return Normal(self.loc(h).squeeze(-1), nn.functional.softplus(self.scale(h)).squeeze(-1) + 0.05)


def likelihood(dist, target, floor=20.0):
    return dist.log_prob(target).clamp(min=-floor).mean()  # expect: loss/wrong-direction


model = DensityNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    for rows in torch.randperm(640).split(32):
        loss = likelihood(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# twin: return dist => return -dist
# twin: clamp(min=-floor) => clamp(max=floor)
