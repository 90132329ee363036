# allow: curve/plateau, optim/lr-too-low, numeric/gradient-explosion
import torch
from torch import nn

torch.manual_seed(10)
features = torch.randn(600, 4)
salary = (52_000 + 9_000 * features[:, 0] - 4_000 * features[:, 1] + 1_000 * torch.randn(600)).unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 24)
        self.outer = nn.Linear(24, 1)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(6):
    for rows in torch.randperm(600).split(50):
        guess = net(features[rows])
        loss = ((guess - salary[rows]) ** 2).mean()  # expect: loss/unscaled-target
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
