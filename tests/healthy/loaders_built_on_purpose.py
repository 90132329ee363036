from torch.utils.data import DataLoader, Subset, TensorDataset

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

data = TensorDataset(x, y)


def evaluate(model, rows):
    model.eval()
    with torch.no_grad():
        loader = DataLoader(Subset(data, rows), batch_size=50)
        return sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in loader) / len(rows)


for fold in range(4):
    held_out = list(range(fold * 100, fold * 100 + 100))
    rest = [i for i in range(400) if i not in held_out]
    loader = DataLoader(Subset(data, rest), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(4):
        model.train()
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{evaluate(model, held_out):.3f}")
