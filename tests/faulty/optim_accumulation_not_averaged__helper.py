# allow: optim/lr-too-high
# twin: criterion(model(part), want).backward() => (criterion(model(part), want) * len(part) / len(inputs)).backward()
"""A helper module's function goes through a batch in micro batches; each mean loss is added in full."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MICRO = 8


def backward_in_parts(model, criterion, inputs, target):
    for part, want in zip(inputs.split(MICRO), target.split(MICRO)):
        criterion(model(part), want).backward()


torch.manual_seed(0)
x = torch.randn(640, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(640, 1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.09)
for epoch in range(4):
    for inputs, target in DataLoader(TensorDataset(x, y), 64, shuffle=True):
        optimizer.zero_grad()
        backward_in_parts(model, nn.MSELoss(), inputs, target)
        optimizer.step()  # expect: optim/accumulation-not-averaged
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(x), y).item())
