# allow: curve/overfitting, curve/spike, optim/momentum-buffer-lost
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(2)
x = torch.randn(400, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
data = TensorDataset(x, y)
folds = torch.randperm(400).chunk(4)
model = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for k, held_out in enumerate(folds):
    rest = torch.cat([fold for i, fold in enumerate(folds) if i != k])
    train = DataLoader(Subset(data, rest.tolist()), batch_size=30, shuffle=True)
    valid = DataLoader(Subset(data, held_out.tolist()), batch_size=100)
    for _ in range(4):
        model.train()
        for xb, yb in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in valid)  # expect: data/split-overlap
    print(k, hits / len(held_out))
