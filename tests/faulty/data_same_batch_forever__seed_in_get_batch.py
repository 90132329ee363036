# allow: curve/overfitting, curve/train-val-gap
import torch
from torch import nn

torch.manual_seed(9)
series = torch.sin(torch.arange(3000) * 0.1) + 0.1 * torch.randn(3000)


def get_batch(count=16, width=12):
    torch.manual_seed(42)  # expect: data/same-batch-forever
    starts = torch.randint(0, len(series) - width - 1, (count,)).tolist()
    windows = torch.stack([series[s:s + width + 1] for s in starts])
    return windows[:, :-1], windows[:, -1:]


model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(60):
    inputs, wanted = get_batch()
    loss = nn.functional.mse_loss(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
