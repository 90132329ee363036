# twin: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()) => nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
# allow: shape/padding-leaks
"""A helper flattens logits and targets for the loss, padding and all."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)


def sequence_loss(logits, target):
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())  # expect: loss/padding-counted


def sentence():
    n, words = random.choice((3, 4, 5, 12, 14)), [random.randrange(1, 9)]
    for _ in range(n):
        words.append((3 * words[-1] + random.randrange(2)) % 8 + 1)
    return torch.tensor(words)


class Next(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(9, 16, padding_idx=0), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 9)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


loader = DataLoader([sentence() for _ in range(400)], 20, shuffle=True, collate_fn=lambda rows: pad_sequence(rows, batch_first=True))
model = Next()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for words in loader:
        loss = sequence_loss(model(words[:, :-1]), words[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
