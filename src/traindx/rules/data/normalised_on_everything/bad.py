import torch
from torch import nn

torch.manual_seed(0)
time = torch.linspace(0, 1, 600)[:, None]
x = torch.randn(600, 6) + 4 * time ** 3
y = x[:, :1] - x[:, 1:2] + 0.1 * torch.randn(600, 1)
x = (x - x.mean(0)) / x.std(0)  # expect: data/normalised-on-everything
train_x, train_y, val_x, val_y = x[:450], y[:450], x[450:], y[450:]
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(450).split(30):
        loss = nn.functional.mse_loss(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(val_x), val_y).item())
