import torch
from torch import nn

torch.manual_seed(0)
y = torch.arange(4).repeat_interleave(100)
x = torch.randn(400, 6) + nn.functional.one_hot(y, 6) * 2.0
order = torch.randperm(400)
x, y = x[order], y[order]
train_x, train_y, test_x, test_y = x[:300], y[:300], x[300:], y[300:]
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(300).split(30):
        loss = nn.functional.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.cross_entropy(model(test_x), test_y).item())
