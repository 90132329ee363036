import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
best_loss, best_weights = float("inf"), None
for epoch in range(12):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        valid_loss = criterion(model(x_valid), y_valid).item()
    if epoch < 4 and valid_loss < best_loss:
        best_loss = valid_loss
        best_weights = copy.deepcopy(model.state_dict())
model.load_state_dict(best_weights)
print(best_loss)
