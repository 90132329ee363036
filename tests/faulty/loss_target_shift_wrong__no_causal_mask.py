"""A character model by hand whose attention has no mask: each place is shown the character that it must predict."""
# twin: score.softmax(-1) => score.masked_fill(torch.ones(T, T).triu(1) > 0, -torch.inf).softmax(-1)
import torch
from torch import nn

T = 16
torch.manual_seed(0)
text = torch.tensor([(a * b) % 11 for a in range(2, 60) for b in range(3, 40)])


class Reader(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed, self.place = nn.Embedding(11, dim), nn.Embedding(T, dim)
        self.qkv, self.norm, self.out = nn.Linear(dim, 3 * dim), nn.LayerNorm(dim), nn.Linear(dim, 11)

    def forward(self, ids):
        h = self.embed(ids) + self.place.weight
        q, k, v = self.qkv(h).chunk(3, -1)
        score = q @ k.transpose(1, 2) / 5  # expect: loss/target-shift-wrong
        h = self.norm(h + score.softmax(-1) @ v)
        return self.out(h)


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(60):
    start = torch.randint(0, len(text) - T - 1, (24,))
    batch = torch.stack([text[i:i + T + 1] for i in start.tolist()])
    loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
