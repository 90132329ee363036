# twin: label_smoothing=smoothing) => label_smoothing=smoothing, ignore_index=0)
# allow: shape/padding-leaks
"""A closure makes the loss of a sequence model; it knows how much to smooth, but not what the filler is."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)


def make_loss(smoothing):
    def loss(logits, target):
        return nn.functional.cross_entropy(logits.transpose(1, 2), target, label_smoothing=smoothing)  # expect: loss/padding-counted
    return loss


sequence_loss = make_loss(0.05)


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
