import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]


class Meter:
    right = seen = 0

    def add(self, logits, target):
        guess = (logits > 0.5).float()  # expect: record/metric-mistake
        self.right += guess.eq(target).sum().item()
        self.seen += len(target)


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for _ in range(8):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x_train[rows]), y_train[rows].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    meter = Meter()
    with torch.no_grad():
        for rows in torch.arange(144).split(48):
            logits, target = model(x_valid[rows]), y_valid[rows].float()
            criterion(logits, target)
            meter.add(logits, target)
    print(f"accuracy {meter.right / meter.seen:.3f}")
