"""N-BEATS in small: blocks subtract a backcast and add a forecast; a series scaled by its past; MASE against the seasonal guess; windows in time order, shuffled in training only."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)
rng = np.random.default_rng(14)
t = np.arange(1400)
sales = 200 + 0.05 * t + 40 * np.sin(2 * np.pi * t / 7) + 25 * np.sin(2 * np.pi * t / 30) + rng.normal(0, 6, len(t))
split = 1100
mu, sd = sales[:split].mean(), sales[:split].std()
series = torch.tensor((sales - mu) / sd, dtype=torch.float32)
back, ahead = 28, 7


def windows(part):
    w = part.unfold(0, back + ahead, 1)
    return TensorDataset(w[:, :back], w[:, back:])


class Block(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(back, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.backcast, self.forecast = nn.Linear(width, back), nn.Linear(width, ahead)

    def forward(self, x):
        h = self.net(x)
        return x - self.backcast(h), self.forecast(h)


class NBeats(nn.Module):
    def __init__(self, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x):
        total = 0
        for block in self.blocks:
            x, forecast = block(x)
            total = total + forecast
        return total


train, test = DataLoader(windows(series[:split]), 64, shuffle=True), DataLoader(windows(series[split:]), 64)
model, loss_fn = NBeats(), nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    running = []
    for x, y in train:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    model.eval()
    errors, naive = [], []
    with torch.no_grad():
        for x, y in test:
            errors.append((model(x) - y).abs())
            naive.append((x[:, -7:] - y).abs())
    print(f"epoch {epoch}: {np.mean(running):.4f}  MASE {torch.cat(errors).mean() / torch.cat(naive).mean():.3f}")
