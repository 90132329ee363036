# needs: sklearn
# allow: curve/train-val-gap, curve/overfitting
import numpy as np
import torch
from sklearn.preprocessing import MinMaxScaler
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
steps = np.arange(1200)
table = np.stack([np.sin(steps / 9) + 0.004 * steps, np.cos(steps / 9) + 0.006 * steps, 0.01 * steps], 1) + 0.1 * rng.normal(size=(1200, 3))
scaler = MinMaxScaler().fit(table)  # expect: data/normalised-on-everything
parts = [torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (table[:900], table[900:])]
model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train, test = parts
for epoch in range(4):
    for rows in torch.randperm(899).split(32):
        loss = ((model(train[rows]) - train[rows + 1, :1]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(((model(test[:-1]) - test[1:, :1]) ** 2).mean().item())
