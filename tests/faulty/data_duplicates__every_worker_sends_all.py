# allow: speed/input-bound, speed/loader-in-loop
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __iter__(self):
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(1))
        return ((self.x[i], self.y[i]) for i in order.tolist())


torch.manual_seed(12)
x = torch.randn(240, 6)
y = x[:, :1] - x[:, 1:2]
loader = DataLoader(Stream(x, y), batch_size=24, num_workers=2)  # expect: data/duplicates
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
