import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    correct = 0
    for rows in torch.randperm(256).split(64):
        logits = model(x[rows])
        loss = nn.functional.cross_entropy(logits, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guess = logits.argmax(1)
        for i in range(len(rows)):
            correct += int(guess[i].item() == y[rows[i]].item())  # expect: speed/sync-every-step
    print(correct / 256)
