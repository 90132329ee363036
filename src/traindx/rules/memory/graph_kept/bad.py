import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 8)
y = x[:, :1] * x[:, 1:2]
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
history = []
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    valid_loss = criterion(model(x_valid), y_valid)
    history.append(valid_loss)  # expect: memory/graph-kept
print(f"{float(min(history)):.3f}")
