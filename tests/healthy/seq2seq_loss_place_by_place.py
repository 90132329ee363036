"""A decoder that is trained one place after the other: at each place the loss leaves out the sequences that are already over."""
import random

import torch
from torch import nn

random.seed(3)
torch.manual_seed(3)
PAD, SOS, WORDS = 0, 1, 12


def batch(count):
    rows = [[random.randint(2, 11) for _ in range(random.randint(3, 7))] for _ in range(count)]
    wanted = [[2 + (word + 2) % 10 for word in reversed(row)] for row in rows]
    return (nn.utils.rnn.pad_sequence([torch.tensor(row) for row in part], batch_first=True, padding_value=PAD) for part in (rows, wanted))


class Seq2Seq(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.encoder, self.decoder = nn.GRU(width, width, batch_first=True), nn.GRUCell(width, width)
        self.out = nn.Linear(width, WORDS)

    def read(self, x):
        lengths = (x != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.words(x), lengths, batch_first=True, enforce_sorted=False)
        return self.encoder(packed)[1][0]

    def forward(self, word, state):
        state = self.decoder(self.words(word), state)
        return self.out(state), state


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")
for step in range(150):
    x, y = batch(32)
    state, word, loss = model.read(x), torch.full((len(x),), SOS), 0.0
    for place in range(y.shape[1]):
        scores, state = model(word, state)
        loss = loss + criterion(scores, y[:, place])
        word = y[:, place]
    loss = loss / (y != PAD).sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 49:
        print(step + 1, loss.item())
