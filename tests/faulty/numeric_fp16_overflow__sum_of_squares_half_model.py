# allow: numeric/low-precision-weights, data/not-normalised
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 24)
y = (x[:, 0] > 0).long()


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(24, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        h = self.lift(x) * 300
        power = h ** 2  # expect: numeric/fp16-overflow
        return self.head(h / (power.mean(1, keepdim=True) + 1e-3).sqrt())


net = Energy().half()
optimizer = torch.optim.SGD(net.parameters(), lr=5e-2)
for _ in range(3):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(net(x[rows].half()).float(), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
