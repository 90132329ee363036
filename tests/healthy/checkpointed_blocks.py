"""Gradient checkpointing: the blocks run again in the backward; dropout inside; accumulation over micro batches, uneven at the end."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(4)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, 4, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim), nn.Dropout(0.1))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attend(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Net(nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.embed = nn.Linear(3, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 3)

    def forward(self, x):
        h = self.embed(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if self.training else block(h)
        return self.head(h.mean(1))


def clouds(n):
    label = torch.randint(0, 3, (n,))
    points = torch.randn(n, 20, 3)
    points[label == 1, :, 2] = 0
    points[label == 2] = nn.functional.normalize(points[label == 2], dim=-1)
    return points, label


x, y = clouds(520)
vx, vy = clouds(120)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
accumulate = 4
for epoch in range(3):
    model.train()
    micro = torch.randperm(len(x)).split(16)
    for i, rows in enumerate(micro):
        last = i + 1 == len(micro)
        group = accumulate if i < len(micro) // accumulate * accumulate else len(micro) % accumulate
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / group
        loss.backward()
        if (i + 1) % accumulate == 0 or last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(vx).argmax(1) == vy).float().mean().item())
