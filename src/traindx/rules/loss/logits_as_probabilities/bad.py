# allow: numeric/gradient-explosion
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = F.nll_loss(model(x[rows]), y[rows])  # expect: loss/logits-as-probabilities
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
