"""HF-like linear schedule: the plan counts optimizer steps, but the scheduler is called after every micro batch."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
epochs, accumulate, micro = 12, 4, 32
total = epochs * (512 // micro) // accumulate


def lr_lambda(step):
    return max(0.0, (total - step) / total)


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
for _ in range(epochs):
    for n, rows in enumerate(torch.randperm(512).split(micro)):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows]) / accumulate
        loss.backward()
        if (n + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()  # expect: optim/lr-zero
