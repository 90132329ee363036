"""A learning-rate range test first (the rate grows until it diverges, state restored after), then one-cycle training."""
import copy

import torch
from torch import nn

torch.manual_seed(14)
x = torch.randn(1000, 20)
y = (x[:, :5].sum(1) + x[:, 5] * x[:, 6] > 0).long()
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()


def find_rate():
    saved = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    history = []
    for k in range(60):
        rows = torch.randint(0, 800, (64,))
        rate = 1e-4 * 1.2 ** k
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = criterion(model(x[rows]), y[rows])
        history.append((loss.item(), rate))
        if loss.item() > 4 * history[0][0]:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.load_state_dict(saved)
    return min(history)[1] / 10


rate = max(find_rate(), 1e-2)
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4 * rate, total_steps=20 * 13)
for epoch in range(20):
    for rows in torch.randperm(800).split(64):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cycle.step()
with torch.no_grad():
    print(rate, (model(x[800:]).argmax(1) == y[800:]).float().mean().item())
