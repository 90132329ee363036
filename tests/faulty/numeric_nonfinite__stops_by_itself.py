import math

import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(400, 5)
counts = torch.poisson(3 * x[:, 0])
x[250] = -9.0
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
done = False
for _ in range(6):
    for rows in torch.randperm(400).split(40):
        rate = net(x[rows]).squeeze(1)
        log_rate = torch.log(rate)  # expect: numeric/nonfinite
        loss = nn.functional.poisson_nll_loss(log_rate, counts[rows], log_input=True)
        if not math.isfinite(loss.item()):
            done = True
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if done:
        break
