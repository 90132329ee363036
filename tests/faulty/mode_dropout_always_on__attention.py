"""Self-attention with a fixed dropout_p: the function does not know of eval mode."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2)  # expect: mode/dropout-always-on
        return x + self.out(a.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.block = Block()
        self.head = nn.Linear(16, 2)

    def forward(self, ids):
        return self.head(self.block(self.embed(ids)).mean(1))


torch.manual_seed(4)
ids = torch.randint(0, 12, (400, 6))
labels = ((ids > 5).sum(1) > 3).long()
model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    for rows in torch.randperm(320).split(32):
        loss = F.cross_entropy(model(ids[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        print((model(ids[320:]).argmax(1) == labels[320:]).float().mean().item())
