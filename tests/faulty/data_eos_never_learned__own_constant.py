"""A hand-written vocabulary whose END is also the filler, and the loss leaves the filler out."""
# twin: END, GO, WIDTH = 0, 1, 8 => PAD, END, GO, WIDTH = 0, 11, 1, 8
# twin: torch.full((1, WIDTH), END).repeat(n, 1) => torch.full((1, WIDTH), PAD).repeat(n, 1)
# twin: ignore_index=END => ignore_index=PAD
import torch
from torch import nn

END, GO, WIDTH = 0, 1, 8


def lines(n):
    rows = torch.full((1, WIDTH), END).repeat(n, 1)
    for row in rows:
        length = int(torch.randint(2, WIDTH - 2, ()))
        start = int(torch.randint(2, 6, ()))
        row[0], row[1:length + 1], row[length + 1] = GO, torch.arange(start, start + length) % 9 + 2, END
    return rows


class Writer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed, self.gru, self.out = nn.Embedding(12, dim), nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, 12)

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


torch.manual_seed(0)
model, rows = Writer(), lines(240)
criterion = nn.CrossEntropyLoss(ignore_index=END)  # expect: data/eos-never-learned
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(6):
    for batch in rows[torch.randperm(240)].split(24):
        loss = criterion(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
