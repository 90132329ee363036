# allow: curve/plateau
# twin: usable = np.ones => usable = np.isfinite(x).all(1) & np.ones
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
x = rng.normal(size=(1200, 5)).astype("float32")
y = (x[:, 0] - x[:, 1] + 0.1 * rng.normal(size=1200)).astype("float32")
x[rng.random(1200) < 0.03, 2] = np.nan  # a sensor that was off
usable = np.ones(1200, bool)
loader = DataLoader(TensorDataset(torch.from_numpy(x[usable]), torch.from_numpy(y[usable])), 40, shuffle=True)  # expect: data/nonfinite-input
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    for inputs, wanted in loader:
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), wanted)
        if not torch.isfinite(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
