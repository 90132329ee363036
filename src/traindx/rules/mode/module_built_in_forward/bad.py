# allow: curve/plateau, curve/oscillating
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        h = h + nn.Linear(32, 32)(h)  # expect: mode/module-built-in-forward
        return self.out(torch.relu(h))


torch.manual_seed(0)
x = torch.randn(384, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
