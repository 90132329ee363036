# allow: curve/spike, curve/oscillating, numeric/gradient-explosion, curve/plateau
import torch
from torch import nn

torch.manual_seed(15)
text = torch.randint(0, 30, (4000,))
text[1::2] = (text[::2] + 1) % 30


class TinyLM(nn.Module):
    def __init__(self, vocabulary=30, width=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        hidden, _ = self.mix(self.tokens(ids))
        return self.norm(hidden) @ self.tokens.weight.T * 1.5


model = TinyLM()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(30):
    starts = torch.randint(0, 3980, (16,))
    block = torch.stack([text[s:s + 17] for s in starts.tolist()])
    loss = nn.functional.cross_entropy(model(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten())  # expect: loss/initial-loss-off
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
