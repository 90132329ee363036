import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
order = torch.randperm(400)
train_rows, val_rows = order[:300], order[300:]
train = DataLoader(TensorDataset(x[train_rows], y[train_rows]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[val_rows], y[val_rows]), batch_size=50)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for loader in (train, val):
            print(sum((model(xb).argmax(1) == yb).float().mean().item() for xb, yb in loader) / len(loader))
