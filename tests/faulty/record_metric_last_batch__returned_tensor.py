import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]


def evaluate(model):
    model.eval()
    with torch.no_grad():
        for rows in torch.arange(144).split(50):
            error = nn.functional.cross_entropy(model(x_valid[rows]), y_valid[rows])  # expect: record/metric-last-batch
    return error


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "train", round(loss.item(), 4), "valid", round(evaluate(model).item(), 4))
