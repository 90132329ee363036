import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(1)
x = torch.randn(300, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
data = TensorDataset(x, y)
folds = torch.randperm(300).chunk(5)
for k, held_out in enumerate(folds):
    rest = torch.cat([fold for i, fold in enumerate(folds) if i != k]).tolist()
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(4):
        for xb, yb in DataLoader(Subset(data, rest), batch_size=30, shuffle=True):
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print(k, sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in DataLoader(Subset(data, held_out.tolist()), batch_size=60)) / 60)
