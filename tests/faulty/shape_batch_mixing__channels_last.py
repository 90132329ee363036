# allow: curve/plateau
"""Heads split by a reshape that takes the batch for heads."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(192, 6, 8)
y = (x[:, 2].sum(1) > 0).long()


class Attention(nn.Module):
    def __init__(self, heads=2, width=8):
        super().__init__()
        self.heads, self.width = heads, width
        self.qkv, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, h):
        b, t, d = h.shape
        q, k, v = self.qkv(h).view(b, t, 3, self.heads, d // self.heads).permute(2, 3, 0, 1, 4)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v
        joined = mixed.reshape(b, t, d)  # expect: shape/batch-mixing
        return self.head(self.out(joined).mean(1))


model = Attention()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    for rows in torch.randperm(192).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
