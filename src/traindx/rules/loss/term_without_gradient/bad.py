import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        logits = model(x[rows])
        loss = nn.functional.cross_entropy(logits, y[rows])
        picked = logits.argmax(1).float()  # expect: loss/term-without-gradient
        balance = (picked.mean() - 0.5) ** 2
        loss = loss + 0.5 * balance + 0.01
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
