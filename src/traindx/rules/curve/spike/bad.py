import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 6)
y = x[:, :1] - 0.5 * x[:, 1:2] + 0.3 * torch.randn(640, 1)
y[205] = 60.0  # a typing error
net = nn.Linear(6, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for _ in range(2):
    for i in range(0, 640, 16):
        loss = nn.functional.mse_loss(net(x[i:i + 16]), y[i:i + 16])  # expect: curve/spike
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
