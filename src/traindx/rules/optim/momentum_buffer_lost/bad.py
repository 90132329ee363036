import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = torch.sin(x @ torch.randn(6, 1)) + 0.1 * torch.randn(256, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
for _ in range(10):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # expect: optim/momentum-buffer-lost
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
