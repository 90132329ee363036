"""Deep residual regressor whose blocks are recomputed in the backward pass to save memory."""
# allow: curve/plateau, optim/decay-too-strong
# twin: use_reentrant=True => use_reentrant=False
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Deep(nn.Module):
    def __init__(self, features, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block(features) for _ in range(depth)])
        self.out = nn.Sequential(nn.LayerNorm(features), nn.Linear(features, 1))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)  # expect: loss/not-connected
        return self.out(x).squeeze(-1)


def data(n):
    x = torch.randn(n, 24)
    return x, torch.sin(x[:, 0] * x[:, 1]) + x[:, 2].abs() - 0.8 + 0.5 * x[:, 3] * x[:, 4]


x, y = data(3000)
x_test, y_test = data(500)
model = Deep(24)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(4):
    model.train()
    for rows in torch.randperm(len(x)).split(60):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} test mse {nn.functional.mse_loss(model(x_test), y_test):.4f}")
