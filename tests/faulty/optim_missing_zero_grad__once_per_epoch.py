"""zero_grad stands outside the inner loop: once for each epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 6)
data = TensorDataset(x, x @ torch.randn(6, 1) + 0.1 * torch.randn(320, 1))


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(epochs):
        optimizer.zero_grad()
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()  # expect: optim/missing-zero-grad


train(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)), DataLoader(data, batch_size=32, shuffle=True), 6)
