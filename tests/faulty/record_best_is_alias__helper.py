# twin: return {name: value for name, value in model.state_dict().items()} => return {name: value.clone() for name, value in model.state_dict().items()}
# allow: curve/overfitting
"""A helper takes a snapshot; the dict is new, the tensors in it are the model's own."""
import torch
from torch import nn


def snapshot(model):
    return {name: value for name, value in model.state_dict().items()}  # expect: record/best-is-alias


torch.manual_seed(0)
x = torch.randn(260, 20)
y = (x[:, 0] + torch.randn(260) > 0).long()
model = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best, weights = float("inf"), None
for epoch in range(15):
    for rows in torch.randperm(160).split(20):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        value = nn.functional.cross_entropy(model(x[160:]), y[160:]).item()
    if value < best:
        best, weights = value, snapshot(model)
model.load_state_dict(weights)
with torch.no_grad():
    print(best, nn.functional.cross_entropy(model(x[160:]), y[160:]).item())
