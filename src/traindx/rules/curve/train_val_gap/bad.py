# allow: data/normalised-differently, curve/overfitting
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 6)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(500).split(25):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        far = x[500:] + 1.5  # another site, another calibration
        print(nn.functional.mse_loss(net(far), y[500:]).item())  # expect: curve/train-val-gap
