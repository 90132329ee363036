"""Large matrix products; batches are cut by a permutation, in the loop."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(4096, 256)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(50):
    order = torch.randperm(len(x))
    for begin in range(0, len(x), 256):
        rows = order[begin:begin + 256]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
