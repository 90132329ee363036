"""The learning rate restarts, the task grows harder: the loss bumps, and both are meant."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(900, 6)
hardness = x[:, 0].abs()
y = (x[:, 0] + 0.3 * x[:, 1] > 0).long()
easy = torch.argsort(-hardness)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=20)
for stage in range(1, 7):
    pool = easy[:150 * stage]
    for _ in range(2):
        for rows in pool[torch.randperm(len(pool))].split(30):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
