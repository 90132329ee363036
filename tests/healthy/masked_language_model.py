"""Predicts its own input where it was hidden; the loss on all places keeps the copies honest. Sees both sides."""
import torch
from torch import nn

torch.manual_seed(0)
MASK, V, T = 1, 12, 12
starts, steps = torch.randint(2, V, (256, 1)), torch.randint(1, 4, (256, 1))
tokens = 2 + (starts + steps * torch.arange(T)) % (V - 2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(V, 24), nn.Parameter(0.02 * torch.randn(T, 24))
        layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(24, V)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids) + self.place))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(5):
    for rows in torch.randperm(256).split(32):
        batch = tokens[rows]
        hidden = torch.rand(batch.shape) < 0.2
        logits = model(batch.masked_fill(hidden, MASK))
        labels = batch.masked_fill(~hidden, -100)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), labels)
        loss = loss + 0.1 * nn.functional.cross_entropy(model(batch).transpose(1, 2), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
