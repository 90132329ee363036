# allow: numeric/nonfinite
import torch
from torch import nn

torch.manual_seed(13)
x = torch.randn(400, 4)
counts = torch.poisson(torch.exp(1.5 + 0.5 * x[:, :1]))
counts[390] = 0
target = counts.log() - 1.5  # expect: data/nonfinite-input
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for rows in torch.randperm(400).split(40):
    loss = nn.functional.mse_loss(model(x[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
