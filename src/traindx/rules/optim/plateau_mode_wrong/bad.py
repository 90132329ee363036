# allow: optim/lr-zero, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 10)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0).long()
train, valid = torch.arange(480), torch.arange(480, 640)
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)  # expect: optim/plateau-mode-wrong
for _ in range(14):
    for rows in train[torch.randperm(480)].split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x[valid]).argmax(1) == y[valid]).float().mean().item()
    scheduler.step(accuracy)
