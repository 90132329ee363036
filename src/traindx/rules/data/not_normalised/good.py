import torch
from torch import nn

torch.manual_seed(0)
signal = torch.randn(400, 4)
y = (signal[:, 0] + signal[:, 1] > 0).long()
x = signal * torch.tensor([0.1, 0.2, 300.0, 50.0]) + torch.tensor([1.0, 2.0, 800.0, 100.0])
x = (x - x.mean(0)) / x.std(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Sigmoid(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(12):
    for rows in torch.randperm(400).split(32):
        scores = model(x[rows])
        loss = nn.functional.cross_entropy(scores, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
