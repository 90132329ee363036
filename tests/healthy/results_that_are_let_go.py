from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses, recent, curve = [], deque(maxlen=30), torch.zeros(0)
for _ in range(12):
    model.train()
    running = 0.0
    for rows in torch.randperm(256).split(32):
        out = model(x_train[rows])
        loss = nn.functional.cross_entropy(out, y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = running + loss  # of one epoch: let go at its end
        recent.append(out.detach())
        losses.append(loss.item())
    curve = torch.cat([curve, (running / 8).detach().reshape(1)])
    model.eval()
    with torch.no_grad():
        outputs = [model(x_valid[rows]) for rows in torch.arange(144).split(48)]
        print(round(nn.functional.cross_entropy(torch.cat(outputs), y_valid).item(), 3))
print(curve.shape, len(losses))
