"""One function for both phases: the flag that it is given switches gradients, not modes."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(500, 1, 12, 12)
y = (x.mean((1, 2, 3)) + 0.3 * x[:, 0, 3, 3] > 0).long()
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), 32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[400:], y[400:]), 50)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(800, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()


def run_epoch(loader, train):
    total = 0.0
    with torch.set_grad_enabled(train):
        for inputs, labels in loader:
            loss = criterion(model(inputs), labels)  # expect: mode/eval-missing
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
    return total / len(loader.dataset)


for epoch in range(3):
    print(run_epoch(train_loader, True), run_epoch(val_loader, False))
