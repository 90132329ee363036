import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
x = torch.randn(256, 8)
y = x[:, :1] * 2 - x[:, 1:2]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{loss.item():.3f}")
