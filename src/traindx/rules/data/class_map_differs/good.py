import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def split(names, count):
    found = [names[i] for i in torch.randint(0, len(names), (count,)).tolist()]
    number = {name: i for i, name in enumerate(sorted(names))}
    x = torch.stack([centres[name] for name in found]) + 0.3 * torch.randn(count, 8)
    return TensorDataset(x, torch.tensor([number[name] for name in found]))


torch.manual_seed(5)
names = ["ant", "bee", "cat", "dog"]
centres = {name: torch.randn(8) for name in names}
train, valid = split(names, 256), split(names, 128)
train_loader, valid_loader = DataLoader(train, 32, shuffle=True), DataLoader(valid, 64)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in valid_loader)
    print("accuracy", right / len(valid))
