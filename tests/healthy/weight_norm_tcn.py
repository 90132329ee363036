"""A temporal convolution network with weight norm and causal padding, cut off by slicing; next-value forecasting."""
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, inputs, outputs, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = weight_norm(nn.Conv1d(inputs, outputs, 3, padding=self.pad, dilation=dilation))
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        out = self.conv(x)[..., :-self.pad]
        return torch.relu(self.drop(torch.relu(out)) + self.skip(x))


class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Block(1, 16, 1), Block(16, 16, 2), Block(16, 16, 4))
        self.head = nn.Conv1d(16, 1, 1)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(2)
t = torch.arange(0, 1200, dtype=torch.float32)
series = torch.sin(t / 7) + 0.5 * torch.sin(t / 2.3) + 0.1 * torch.randn(1200)
split = 900
mean, std = series[:split].mean(), series[:split].std()
series = (series - mean) / std


def windows(values, length=48, stride=5):
    pieces = values.unfold(0, length + 1, stride)
    return TensorDataset(pieces[:, None, :-1].contiguous(), pieces[:, None, 1:].contiguous())


train, val = DataLoader(windows(series[:split]), 16, shuffle=True), DataLoader(windows(series[split:]), 64)
model = TCN()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error, count = 0.0, 0
        for x, y in val:
            error += nn.functional.mse_loss(model(x), y, reduction="sum").item()
            count += y.numel()
    print(f"{epoch} train {loss.item():.3f} val {error / count:.3f}")
