"""Adapt a trained regressor to a new plant with low-rank adapters."""
# twin: self.down = nn.Parameter(torch.zeros(rank, base.in_features)) => self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
import torch
from torch import nn

torch.manual_seed(0)


class Adapter(nn.Module):
    def __init__(self, base, rank=4, scale=2.0):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        self.down = nn.Parameter(torch.zeros(rank, base.in_features))  # expect: init/symmetric
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


def plant(n, drift):
    x = torch.randn(n, 16)
    y = torch.sin(x[:, 0] + drift * x[:, 5]) + 0.6 * x[:, 1] * (x[:, 2] + drift * x[:, 6]) + 0.3 * x[:, 3]
    return x, y[:, None]


def fit(model, parameters, data, epochs, lr):
    x, y = data
    optimizer = torch.optim.AdamW(parameters, lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"  epoch {epoch + 1} loss {loss.item():.4f}")


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
fit(model, model.parameters(), plant(3000, 0.0), 12, 2e-3)
for i, layer in enumerate(model):
    if isinstance(layer, nn.Linear):
        model[i] = Adapter(layer)
new, test = plant(1500, 0.8), plant(500, 0.8)
fit(model, [p for p in model.parameters() if p.requires_grad], new, 12, 3e-3)
with torch.no_grad():
    print(f"new plant: test mse {nn.functional.mse_loss(model(test[0]), test[1]):.4f}")
