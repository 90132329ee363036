# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3), nn.Softmax(dim=1))
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = criterion(model(x[rows]), y[rows])  # expect: loss/logits-as-probabilities
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
