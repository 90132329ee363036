"""Layers in a plain list, each with a loss and an optimizer of its own; no gradient passes between them."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Linear):
    def __init__(self, width_in, width_out):
        super().__init__(width_in, width_out)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=5e-3)

    def forward(self, x):
        return torch.relu(super().forward(x / (x.norm(dim=1, keepdim=True) + 1e-4)))

    def learn(self, good, wrong):
        goodness = [self(x).pow(2).mean(1) for x in (good, wrong)]
        loss = F.softplus(torch.cat([1 - goodness[0], goodness[1] - 1])).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self(good).detach(), self(wrong).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Layer(10, 32), Layer(32, 32)]

    def forward(self, good, wrong):
        for layer in self.layers:
            good, wrong = layer.learn(good, wrong)
        return good


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
net = Net()
for _ in range(4):
    for rows in torch.randperm(256).split(64):
        labels = F.one_hot(y[rows], 2).float()
        net(torch.cat([x[rows], labels], 1), torch.cat([x[rows], 1 - labels], 1))
