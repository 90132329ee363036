# allow: data/class-imbalance
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = torch.bucketize(x[:, 0] + 0.3 * torch.randn(512), torch.tensor([0.8, 1.3]))
counts = y.bincount()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(weight=counts / counts.sum())  # expect: loss/class-weights-wrong
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
