import torch
from torch import nn

torch.manual_seed(13)
area, age, distance = torch.rand(500) * 200 + 40, torch.rand(500) * 80, torch.rand(500) * 30_000
price = 2_000 * area - 500 * age - 3 * distance + 80_000 + 10_000 * torch.randn(500)
table = torch.stack([area, age, distance], 1)


class Prices(nn.Module):
    def __init__(self, table, price):
        super().__init__()
        self.register_buffer("centre", table.mean(0))
        self.register_buffer("spread", table.std(0))
        self.register_buffer("scale", torch.stack([price.mean(), price.std()]))
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        z = (x - self.centre) / self.spread
        return self.net(z).squeeze(1) * self.scale[1] + self.scale[0]


model = Prices(table[:400], price[:400])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    for rows in torch.randperm(400).split(40):
        loss = nn.functional.mse_loss(model(table[rows]), price[rows]) / price.var()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print(nn.functional.l1_loss(model(table[400:]), price[400:]).item())
