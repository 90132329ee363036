import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(480, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
train_x, train_y, val_x, val_y = x[:384], y[:384], x[384:], y[384:]
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(0.4), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    for rows in torch.randperm(len(train_x)).split(32):
        optimizer.zero_grad()
        criterion(model(train_x[rows]), train_y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
        print(epoch, criterion(logits, val_y).item(), (logits.argmax(1) == val_y).float().mean().item())
