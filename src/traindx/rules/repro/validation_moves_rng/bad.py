import torch
from torch import nn


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x + 0.1 * torch.randn_like(x))


torch.manual_seed(0)
x = torch.randn(320, 8)
model = Noisy()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(x[256:]), x[256:]).item())  # expect: repro/validation-moves-rng
