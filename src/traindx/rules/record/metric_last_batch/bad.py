import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
train_loader = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    for xb, yb in train_loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for xb, yb in valid_loader:
            valid_loss = criterion(model(xb), yb).item()  # expect: record/metric-last-batch
    print(f"epoch {epoch}: validation loss {valid_loss:.4f}")
