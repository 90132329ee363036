import torch
from torch import nn
from torch.nn.utils import spectral_norm

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, :1] > 0).float() * 2 - 1
net = nn.Sequential(spectral_norm(nn.Linear(10, 64)), nn.ReLU(), spectral_norm(nn.Linear(64, 1)))
with torch.no_grad():
    for _ in range(20):
        net(x)  # in train mode: each forward improves the estimate
net.eval()
with torch.no_grad():
    print("margin before training", (net(x) * y).mean().item())
net.train()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(512).split(64):
        loss = (1 - net(x[rows]) * y[rows]).relu().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
