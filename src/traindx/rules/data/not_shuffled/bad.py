import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = torch.arange(4).repeat_interleave(100)
x = torch.randn(400, 6) + nn.functional.one_hot(y, 6) * 2.0
train = DataLoader(TensorDataset(x, y), batch_size=20)  # expect: data/not-shuffled
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(4):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# allow: curve/oscillating, curve/spike, curve/plateau
