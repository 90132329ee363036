"""Windows of a series whose last value is the value to be forecast."""
# twin: series[i + SPAN - 1] for i in starts => series[i + SPAN] for i in starts
import torch
from torch import nn

SPAN = 12
torch.manual_seed(0)
series = torch.randn(700).cumsum(0) * 0.2 + torch.sin(torch.arange(700) / 4)
series = (series - series[:500].mean()) / series[:500].std()
starts = range(700 - SPAN)
windows = torch.stack([series[i:i + SPAN] for i in starts]).unsqueeze(1)
targets = torch.stack([series[i + SPAN - 1] for i in starts])
net = nn.Sequential(nn.Conv1d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(120, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(5):
    for rows in torch.randperm(480).split(24):
        loss = nn.functional.mse_loss(net(windows[rows]).squeeze(1), targets[rows])  # expect: data/target-in-input
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
