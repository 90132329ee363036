# allow: numeric/scaler-missing, optim/lr-too-low, curve/plateau, init/gradient-vanishing
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 12)
y = torch.sin(x[:, :1] * 2) + 0.5 * x[:, 1:2]
net = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-12)
for _ in range(6):
    for rows in torch.randperm(1024).split(256):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = 2e-5 * ((net(x[rows]) - y[rows]) ** 2).mean()  # one of many terms, weighed lightly
        optimizer.zero_grad()
        loss.backward()  # expect: numeric/fp16-underflow
        optimizer.step()
