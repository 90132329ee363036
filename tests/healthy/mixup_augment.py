"""Mixup: inputs and soft targets are blended, validation is plain; training loss stays well above the validation loss."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(15)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
mean, std = x[:1400].mean(), x[:1400].std()
x = (x - mean) / std
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.BatchNorm1d(96), nn.Dropout(0.3), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    running = 0.0
    for rows in torch.randperm(1400).split(70):
        lam = float(torch.distributions.Beta(0.4, 0.4).sample())
        other = rows[torch.randperm(len(rows))]
        mixed = lam * x[rows] + (1 - lam) * x[other]
        goal = lam * F.one_hot(y[rows], 10).float() + (1 - lam) * F.one_hot(y[other], 10).float()
        loss = F.cross_entropy(model(mixed), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x[1400:])
        print(f"{epoch} train {running / 20:.3f} valid {F.cross_entropy(out, y[1400:]).item():.3f} acc {(out.argmax(1) == y[1400:]).float().mean():.3f}")
