import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
x[300] = 0.0
y = (x.norm(dim=1) > 2.7).long()


class Lengths(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 16, bias=False)
        self.head = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        energy = self.project(x) ** 2
        length = torch.where(energy > 0, energy.sqrt(), torch.zeros_like(energy))  # expect: numeric/nonfinite
        return self.head(length)


model = Lengths()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
