import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = 3 * x @ torch.randn(6, 1) + 0.1 * torch.randn(256, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
gain = torch.ones(1, requires_grad=True)
steps = torch.optim.SGD(model.parameters(), lr=0.02), torch.optim.SGD([gain], lr=0.01)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(gain * model(x[rows]), y[rows])
        for each in steps:
            each.zero_grad()
        loss.backward()
        for each in steps:
            each.step()
