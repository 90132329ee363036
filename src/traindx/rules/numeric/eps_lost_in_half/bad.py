import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 12).half()
x[::20] = 0.0  # empty rows
y = (x[:, 0] > 0).long()


class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(12, 32, bias=False), nn.Linear(32, 2)

    def forward(self, x):
        h = torch.relu(self.layer(x))
        h = h / (h.sum(dim=1, keepdim=True) + 1e-8)  # expect: numeric/eps-lost-in-half
        return self.head(h * 8)


net = Unit().half()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
for _ in range(3):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]).float(), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
