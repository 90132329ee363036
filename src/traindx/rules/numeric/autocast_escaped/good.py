import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(512).split(64):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(x[rows])
            loss = nn.functional.cross_entropy(out, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
