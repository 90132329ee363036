import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = 20 + 5 * torch.randn(500, 8)
y = (x[:, 0] + x[:, 1] > 40).long()
mean, std = x[:400].mean(0), x[:400].std(0)
train = DataLoader(TensorDataset((x[:400] - mean) / std, y[:400]), batch_size=40, shuffle=True)
val = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=50)  # expect: data/normalised-differently
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(sum(nn.functional.cross_entropy(model(xb), yb).item() for xb, yb in val) / len(val))
# allow: curve/train-val-gap, curve/overfitting
