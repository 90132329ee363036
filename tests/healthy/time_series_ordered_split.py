"""Windows of a drifting series, split by time without shuffling the split, statistics from the past only; shuffled batches."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(3)
torch.manual_seed(3)
t = np.arange(3000)
series = 10 + 0.002 * t + 2 * np.sin(t / 12) + 0.3 * rng.normal(size=3000)
cut = 2400
mean, std = series[:cut].mean(), series[:cut].std()
scaled = torch.tensor((series - mean) / std, dtype=torch.float32)
windows = scaled.unfold(0, 25, 1)
train, test = windows[: cut - 24], windows[cut:]
loader = DataLoader(TensorDataset(train[:, :24].unsqueeze(-1), train[:, 24:]), batch_size=64, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return x[:, -1] + self.head(out[:, -1])


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for x, y in loader:
        loss = nn.functional.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), nn.functional.huber_loss(model(test[:, :24].unsqueeze(-1)), test[:, 24:]).item())
