# allow: data/class-imbalance, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = ((x[:, 0] + 0.4 * torch.randn(512)) > 1.3).float()
share = y.mean()
criterion = nn.BCEWithLogitsLoss(pos_weight=share / (1 - share))  # expect: loss/class-weights-wrong
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
