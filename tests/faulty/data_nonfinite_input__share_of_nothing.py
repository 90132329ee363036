"""Topic of short documents from word shares."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(0, 3, (n,), generator=g)
        rates = 0.6 * torch.rand(3, 20, generator=g)
        self.counts = torch.poisson(rates[self.y] * torch.rand(n, 1, generator=g) ** 2, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        c = self.counts[i]
        return 10 * c / c.sum(), self.y[i]  # expect: data/nonfinite-input


torch.manual_seed(0)
loader = DataLoader(Documents(1500), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
