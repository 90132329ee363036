import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(12)
x = torch.randn(600, 6)
y = (x[:, 0] - x[:, 1] > 0).long()
train, valid, test = (TensorDataset(x[a:b], y[a:b]) for a, b in ((0, 400), (400, 500), (500, 600)))
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def accuracy(data):
    with torch.no_grad():
        return sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in DataLoader(data, batch_size=50)) / len(data)


def fit(data, epochs):
    loader = DataLoader(data, batch_size=25, shuffle=True)
    for _ in range(epochs):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


for _ in range(3):
    fit(train, 1)
    print("valid", accuracy(valid))
fit(ConcatDataset([train, valid]), 2)
print("test", accuracy(test))
