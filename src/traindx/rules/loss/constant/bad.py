# allow: curve/plateau, loss/initial-loss-off, shape/softmax-over-batch
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, :1] > 0).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    p = torch.softmax(model(x), dim=1)  # expect: loss/constant
    loss = ((p - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
