import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 48)
        self.out = nn.Linear(48, 2)

    def forward(self, x):
        h = F.relu(self.hidden(x))
        h = F.dropout(h, 0.4)  # expect: mode/dropout-always-on
        return self.out(h)


torch.manual_seed(0)
x = torch.randn(480, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
train_x, train_y, val_x, val_y = x[:384], y[:384], x[384:], y[384:]
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(len(train_x)).split(32):
        optimizer.zero_grad()
        F.cross_entropy(model(train_x[rows]), train_y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, F.cross_entropy(model(val_x), val_y).item())
