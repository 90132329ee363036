"""Modes that look wrong and are meant: Monte Carlo dropout, update_bn, a momentum encoder, frozen BatchNorm, a dummy forward."""
import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
x = torch.randn(480, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
loader = DataLoader(TensorDataset(x[:400], y[:400]), 40, shuffle=True)
model = nn.Sequential(nn.LazyLinear(32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
with torch.no_grad():
    model(x[:4])  # materialises the lazy layer
momentum = copy.deepcopy(model).requires_grad_(False)
for module in momentum.modules():
    if isinstance(module, nn.Dropout):
        module.p = 0.0
average = AveragedModel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    if epoch >= 4:
        model[1].eval()
    for inputs, labels in loader:
        logits = model(inputs)
        with torch.no_grad():
            anchor = momentum(inputs)
        loss = nn.functional.cross_entropy(logits, labels) + 0.01 * nn.functional.mse_loss(logits, anchor)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(momentum.parameters(), model.parameters()):
                slow.lerp_(fast, 0.05)
    average.update_parameters(model)
    update_bn(loader, average)
    average.eval()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.cross_entropy(average(x[400:]), y[400:]).item())
    model[3].train()
    with torch.no_grad():
        draws = torch.stack([model(x[400:]).softmax(1) for _ in range(8)])
    print("spread", draws.std(0).mean().item())
