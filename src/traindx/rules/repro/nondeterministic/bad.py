import torch
from torch import nn

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True  # expect: repro/nondeterministic
x = torch.randn(128, 1, 8, 8)
y = (x.mean((1, 2, 3)) > 0).long()
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    for rows in torch.randperm(128).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
