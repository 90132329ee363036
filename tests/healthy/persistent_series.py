"""Forecasting a series that hardly moves from hour to hour: the last input is nearly the target; the naive guess is printed beside the model's error."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

rng = np.random.default_rng(8)
torch.manual_seed(8)
level = np.cumsum(0.05 * rng.normal(size=1500)) + 0.3 * np.sin(np.arange(1500) / 12)
level = ((level - level[:1100].mean()) / level[:1100].std()).astype(np.float32)


class Hours(Dataset):
    def __init__(self, series, past=24):
        self.series, self.past = series, past

    def __len__(self):
        return len(self.series) - self.past

    def __getitem__(self, i):
        return self.series[i:i + self.past], self.series[i + self.past]


train, test = Hours(level[:1100]), Hours(level[1100:])
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for x, y in DataLoader(train, 50, shuffle=True):
        loss = nn.functional.l1_loss(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pairs = [(model(x).squeeze(-1), x[:, -1], y) for x, y in DataLoader(test, 100)]
    guess, last, y = (torch.cat(part) for part in zip(*pairs))
    print(epoch, (guess - y).abs().mean().item(), "naive", (last - y).abs().mean().item())
