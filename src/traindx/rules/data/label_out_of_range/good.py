import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = torch.where(x[:, 0] + x[:, 1] > 0, 1.0, 0.0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for _ in range(4):
    for rows in torch.randperm(400).split(40):
        loss = criterion(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
