# needs: sklearn
# allow: curve/plateau, init/activation-collapse
# twin: "weight_decay": 0.9 => "weight_decay": 0.001
import torch
from sklearn.datasets import load_diabetes
from torch import nn

x, y = (torch.tensor(part, dtype=torch.float32) for part in load_diabetes(return_X_y=True))
x, y = (x - x.mean(0)) / x.std(0), ((y - y.mean()) / y.std())[:, None]
torch.manual_seed(0)
settings = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.9}
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), **settings)  # expect: optim/decay-too-strong
for epoch in range(20):
    for rows in torch.randperm(442).split(34):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
