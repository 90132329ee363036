"""Two classes, one logit, cross-entropy: the loss is 0 whatever the model says."""
# allow: curve/plateau, loss/initial-loss-off, data/class-imbalance, data/class-never-seen, data/constant-input
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
positive = torch.zeros(256, dtype=torch.long)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        log_p = torch.log_softmax(model(x[rows]), dim=1)  # expect: loss/constant
        loss = -log_p.gather(1, positive[rows][:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
