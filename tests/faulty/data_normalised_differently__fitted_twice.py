# needs: sklearn
# allow: curve/train-val-gap, curve/overfitting
import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(4)
site = np.repeat([0.0, 1.5], [400, 150])
x = rng.normal(size=(550, 4)) + site[:, None]
y = (x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=550)).astype(np.float32)
scaler = StandardScaler()
x_train = torch.tensor(scaler.fit_transform(x[:400]), dtype=torch.float32)
x_test = torch.tensor(scaler.fit_transform(x[400:]), dtype=torch.float32)  # expect: data/normalised-differently
y_train, y_test = torch.tensor(y[:400])[:, None], torch.tensor(y[400:])[:, None]
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(400).split(40):
        loss = nn.functional.mse_loss(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print(nn.functional.mse_loss(model(x_test), y_test).item())
