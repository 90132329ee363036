import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, WeightedRandomSampler

torch.manual_seed(3)
x = torch.randn(800, 6)
y = (x[:, 0] + x[:, 1] > 2.0).long()
train, valid = TensorDataset(x[:600], y[:600]), TensorDataset(x[600:], y[600:])
rare = (y[:600] == 1).nonzero().flatten().tolist()
repeated = ConcatDataset([train] + [Subset(train, rare)] * 8)
weights = torch.where(y[:600] == 1, 8.0, 1.0)
loaders = [DataLoader(repeated, batch_size=40, shuffle=True), DataLoader(train, batch_size=40, sampler=WeightedRandomSampler(weights, 600))]
for loader in loaders:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        print(sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in DataLoader(valid, batch_size=100)) / 200)
