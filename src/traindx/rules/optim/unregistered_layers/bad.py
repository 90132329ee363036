import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 32)
        self.blocks = {"wide": nn.Linear(32, 32), "last": nn.Linear(32, 32)}  # expect: optim/unregistered-layers
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h = torch.relu(self.stem(x))
        for block in self.blocks.values():
            h = torch.relu(block(h))
        return self.out(h)


torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
