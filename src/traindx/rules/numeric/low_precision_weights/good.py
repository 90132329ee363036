import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = torch.tanh(x[:, :1]) + 0.3 * x[:, 1:2]
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1)).to(torch.bfloat16)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)  # updates of 0.005 are well above the spacing of weights near 0.1
for _ in range(4):
    for rows in torch.randperm(512).split(32):
        prediction = net(x[rows].to(torch.bfloat16))
        loss = nn.functional.mse_loss(prediction.float(), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
