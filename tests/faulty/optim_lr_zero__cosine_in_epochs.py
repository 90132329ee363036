"""A cosine over epochs that is stepped after every batch: the rate swings all the time."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)  # expect: optim/lr-zero
    for _ in range(EPOCHS):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()


torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
train(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)), DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
