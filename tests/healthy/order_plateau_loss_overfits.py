"""A validation loss that rises from overfitting, fed to ReduceLROnPlateau in mode min: right as it is."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 20)
y = ((x[:, 0] + 0.8 * torch.randn(200)) > 0).long()
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
for _ in range(14):
    for xb, yb in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
    with torch.no_grad():
        scheduler.step(nn.functional.cross_entropy(model(x[120:]), y[120:]))
