"""Single samples of one mini-batch, weighted by its size: the usual mean in pieces."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(128, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(128, 1)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    for rows in torch.randperm(128).split(16):
        optimizer.zero_grad()
        for i in rows:
            loss = ((model(x[i]) - y[i]) ** 2).sum() / len(rows)
            loss.backward()
        optimizer.step()
