"""A hand-written mask on the hidden units: nothing asks for the mode."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, keep=0.7):
        super().__init__()
        self.keep = keep
        self.hidden = nn.Linear(8, 40)
        self.out = nn.Linear(40, 1)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        mask = (torch.rand_like(h) < self.keep).float() / self.keep
        return self.out(h * mask).squeeze(1)  # expect: mode/dropout-always-on


torch.manual_seed(8)
x = torch.randn(400, 8)
y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
net = Net()
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
