"""nn.Dropout made inside forward: it is in train mode each time."""
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 32)
        self.last = nn.Linear(32, 1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = nn.Dropout(0.3)(h)  # expect: mode/module-built-in-forward
        return self.last(h).squeeze(1)


torch.manual_seed(6)
x = torch.randn(400, 6)
y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
net = Head()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(5):
    net.train()
    for rows in torch.randperm(320).split(32):
        opt.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(nn.functional.mse_loss(net(x[320:]), y[320:]).item())
