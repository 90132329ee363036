# allow: optim/lr-too-high
# twin: loss = nn.functional.mse_loss(model(inputs), target) => loss = nn.functional.mse_loss(model(inputs), target) / every
"""A factory returns the step function, which counts its own calls and steps at every fourth."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_step(model, optimizer, every):
    calls = 0

    def step(inputs, target):
        nonlocal calls
        calls += 1
        loss = nn.functional.mse_loss(model(inputs), target)
        loss.backward()
        if calls % every == 0:
            optimizer.step()  # expect: optim/accumulation-not-averaged
            optimizer.zero_grad()
        return loss.item()
    return step


torch.manual_seed(0)
x = torch.randn(640, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(640, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
step = make_step(model, torch.optim.SGD(model.parameters(), lr=0.2), 4)
for epoch in range(5):
    losses = [step(a, b) for a, b in DataLoader(TensorDataset(x, y), 16, shuffle=True)]
    print(epoch, sum(losses) / len(losses))
