"""Eleven batches, windows of four: the last three of each epoch are cleared at the start of the next."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(352, 6)
data = TensorDataset(x, x @ torch.randn(6, 1) + 0.1 * torch.randn(352, 1))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for _ in range(6):
    optimizer.zero_grad()  # expect: optim/window-lost
    for i, (xb, yb) in enumerate(loader, start=1):
        (nn.functional.mse_loss(model(xb), yb) / 4).backward()
        if i % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
