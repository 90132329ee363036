import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
train_rows, val_rows = torch.randperm(400)[:300], torch.randperm(400)[:100]
train = DataLoader(TensorDataset(x[train_rows], y[train_rows]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[val_rows], y[val_rows]), batch_size=50)  # expect: data/split-overlap
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val)
    print(right / 100)
