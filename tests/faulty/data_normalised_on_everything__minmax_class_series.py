"""A growing series is scaled by the minimum and maximum of all of it, by a small scaler class, before it is cut in two."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class MinMax:
    def fit(self, x):
        self.low, self.high = x.min(), x.max()
        return self

    def transform(self, x):
        return (x - self.low) / (self.high - self.low)


class Windows(Dataset):
    def __init__(self, values, width):
        self.values, self.width = torch.tensor(values, dtype=torch.float32), width

    def __len__(self):
        return len(self.values) - self.width

    def __getitem__(self, i):
        return self.values[i:i + self.width, None], self.values[i + self.width]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(-1)


def load(share=0.75, width=14):
    rng = np.random.default_rng(0)
    t = np.arange(504)
    series = 40 + 0.0008 * t ** 2 + (8 + 0.01 * t) * np.sin(2 * np.pi * t / 7) + rng.normal(0, 2, 504)
    cut = int(share * len(series))
    scaled = MinMax().fit(series).transform(series)  # expect: data/normalised-on-everything
    return Windows(scaled[:cut], width), Windows(scaled[cut - width:], width)


torch.manual_seed(0)
train, test = load()
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    for x, y in DataLoader(train, 32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = torch.cat([(model(x) - y).abs() for x, y in DataLoader(test, 64)]).mean().item()
    print(f"epoch {epoch + 1}: error {error:.4f}")
# twin: MinMax().fit(series).transform => MinMax().fit(series[:cut]).transform
