import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x_train[rows]).squeeze(1), y_train[rows].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = (model(x_valid) > 0).long()
        right = guess == y_valid  # expect: record/metric-mistake
        print(f"accuracy {right.float().mean().item():.3f}")
