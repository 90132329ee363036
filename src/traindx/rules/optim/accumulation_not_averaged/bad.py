# allow: init/dead-units, curve/plateau, optim/lr-too-high, numeric/gradient-explosion
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = torch.sin(x @ torch.randn(8, 1)) + 0.1 * torch.randn(512, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
together = 16
for _ in range(12):
    for i, rows in enumerate(torch.randperm(512).split(16), start=1):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()  # expect: optim/accumulation-not-averaged
        if i % together == 0:
            optimizer.step()
            optimizer.zero_grad()
