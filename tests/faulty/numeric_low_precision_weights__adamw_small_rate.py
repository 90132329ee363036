# allow: optim/lr-too-low, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
tokens = torch.randint(0, 32, (256, 12))
target = (tokens.sum(1) % 3 + (tokens[:, 0] > 15)).clamp(max=2)


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 32)
        self.mix = nn.Linear(32 * 12, 64)
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 3)

    def forward(self, ids):
        h = self.table(ids).flatten(1)
        return self.head(torch.relu(self.norm(self.mix(h))))


model = Tiny()
model = model.bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)  # expect: numeric/low-precision-weights
for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(tokens[rows]).float(), target[rows])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
