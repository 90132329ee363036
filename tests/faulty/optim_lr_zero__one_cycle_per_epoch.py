"""A one-cycle plan in batches that is stepped once an epoch: the rate stays at a twenty-fifth of its peak."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=EPOCHS * len(loader))  # expect: optim/lr-zero
for _ in range(EPOCHS):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
