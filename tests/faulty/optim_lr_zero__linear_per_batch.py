"""A linear decay over epochs, stepped after every batch."""
# allow: curve/plateau
import torch
from torch import nn

EPOCHS = 8
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: max(0.0, 1 - epoch / EPOCHS))  # expect: optim/lr-zero
for epoch in range(EPOCHS):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
