"""A baseline is measured before training, and nothing ever calls train() again."""
# allow: curve/overfitting, curve/train-val-gap
import torch
from torch import nn

torch.manual_seed(3)
x = torch.randn(450, 10)
y = x[:, 0] * 0.8 + x[:, 1] * x[:, 2] + 0.1 * torch.randn(450)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)


def score():
    net.eval()  # expect: mode/train-missing
    with torch.no_grad():
        return nn.functional.mse_loss(net(x[400:]).squeeze(1), y[400:]).item()


def train(epochs):
    for _ in range(epochs):
        for rows in torch.randperm(400).split(40):
            opt.zero_grad()
            nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows]).backward()
            opt.step()


print("before", score())
train(5)
print("after", score())
