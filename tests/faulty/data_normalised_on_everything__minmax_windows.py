# needs: sklearn
# allow: curve/train-val-gap, curve/overfitting
# twin: MinMaxScaler().fit_transform(load) => MinMaxScaler().fit(load[:800]).transform(load)
import numpy as np
import torch
from sklearn.preprocessing import MinMaxScaler
from torch import nn

torch.manual_seed(0)
hours = np.arange(1100)
load = (50 + 0.04 * hours + 8 * np.sin(hours / 2) + 20 * (hours > 950) + np.random.default_rng(2).normal(size=1100))[:, None]
series = torch.tensor(MinMaxScaler().fit_transform(load), dtype=torch.float32)  # expect: data/normalised-on-everything
windows = series.squeeze(1).unfold(0, 25, 1)
train, late = windows[:800], windows[800:]
model = nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    for rows in torch.randperm(800).split(50):
        loss = nn.functional.mse_loss(model(train[rows, :24]), train[rows, 24:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(late[:, :24]), late[:, 24:]).item())
