"""Accumulation done right: divided, clipped at the end of a window, the shorter last window divided by its own length."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(304, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(304, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=5 * 6)
criterion = nn.MSELoss()
every = 4
for _ in range(5):
    for i, (xb, yb) in enumerate(loader):
        window = min(every, len(loader) - i // every * every)
        loss = criterion(model(xb), yb) / window
        loss.backward()
        if (i + 1) % every == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            if scheduler.last_epoch < scheduler.total_steps:
                scheduler.step()
