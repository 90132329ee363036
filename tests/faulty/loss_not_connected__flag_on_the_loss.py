"""The predictions were detached for a plot; a flag on the loss hushed the error."""
# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :1].sin()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        predictions = model(x[rows]).detach()  # expect: loss/not-connected
        history.append(predictions.mean())
        loss = nn.functional.mse_loss(predictions, y[rows])
        loss.requires_grad = True
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
