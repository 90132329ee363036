import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
x = torch.randn(300, 1, 8)
y = (x[:, 0, :4].sum(1) > 0).long()


class Signals(Dataset):
    def __init__(self, rows, augment):
        self.rows, self.augment = rows, augment

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        noise = 0.3 * torch.randn(1, 8) if self.augment else 0.0
        return x[row] + noise, y[row]


train = DataLoader(Signals(range(200), True), batch_size=20, shuffle=True)
val = DataLoader(Signals(range(200, 300), True), batch_size=50)  # expect: data/augmented-validation
model = nn.Sequential(nn.Flatten(), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val) / 100)
