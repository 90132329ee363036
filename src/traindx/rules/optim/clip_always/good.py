import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = 4 * x @ torch.randn(6, 1) + torch.randn(256, 1)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for _ in range(10):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
