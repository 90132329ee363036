# allow: optim/lr-too-low, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = torch.tanh(x[:, :1]) + 0.3 * x[:, 1:2]
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1)).to(torch.bfloat16)  # expect: numeric/low-precision-weights
optimizer = torch.optim.SGD(net.parameters(), lr=2e-3)
for _ in range(4):
    for rows in torch.randperm(512).split(32):
        prediction = net(x[rows].to(torch.bfloat16))
        loss = nn.functional.mse_loss(prediction.float(), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
