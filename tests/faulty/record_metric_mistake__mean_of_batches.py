from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x_valid[:131], y_valid[:131]), batch_size=64)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    model.train()
    for xb, yb in train_loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    shares = []
    with torch.no_grad():
        for xb, yb in valid_loader:
            shares.append((model(xb).argmax(1) == yb).float().mean().item())  # expect: record/metric-mistake
    print(f"validation accuracy {sum(shares) / len(shares):.4f}")
