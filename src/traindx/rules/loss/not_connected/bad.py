# allow: curve/plateau
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.gate = nn.Linear(32, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = torch.relu(self.embed(x))
        scale = torch.sigmoid(self.gate(h)).data  # expect: loss/not-connected
        return self.out(h * scale)


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
