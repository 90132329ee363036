import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.3 * torch.randn(400, 1)


def train(seed, lr):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)  # expect: curve/noise-sized-gain
    for _ in range(4):
        for rows in torch.randperm(300).split(25):
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return nn.functional.mse_loss(net(x[300:]), y[300:]).item()


scores = {lr: sum(train(seed, lr) for seed in range(3)) / 3 for lr in (1e-2, 1.1e-2)}
print("best rate", min(scores, key=scores.get), scores)
