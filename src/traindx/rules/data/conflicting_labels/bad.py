import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 6)
y = (x[:, 0] > 0).long()
second = torch.where(torch.rand(300) < 0.4, 1 - y, y)
data = TensorDataset(torch.cat([x, x]), torch.cat([y, second]))
loader = DataLoader(data, batch_size=30, shuffle=True)  # expect: data/conflicting-labels
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
