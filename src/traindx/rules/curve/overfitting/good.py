import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 30)
y = ((x[:, 0] + 0.3 * torch.randn(1200)) > 0).long()
train, valid = slice(0, 900), slice(900, 1200)
net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.1)
for _ in range(8):
    for rows in torch.randperm(900).split(60):
        loss = nn.functional.cross_entropy(net(x[train][rows]), y[train][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.cross_entropy(net(x[valid]), y[valid]).item())
