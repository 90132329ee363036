import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(800, 12)
y = (x[:, :3].sum(1) > 0).long()
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.7), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(8):
    net.train()
    for rows in torch.randperm(600).split(30):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(nn.functional.cross_entropy(net(x[600:]), y[600:]).item())  # expect: curve/val-better-than-train
