import torch
import torch.nn.functional as F
from torch import nn

VOCAB, EOS = 16, 1
PAD = 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, VOCAB)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def batch(count):
    start = torch.randint(2, VOCAB, (count, 1))
    rows = (start + 3 * torch.arange(14) - 2) % (VOCAB - 2) + 2
    lengths = torch.randint(6, 13, (count, 1))
    at = torch.arange(14)
    return rows.masked_fill(at > lengths, PAD).masked_fill(at == lengths, EOS)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(60):
    rows = batch(32)
    logits = model(rows[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    row = batch(1)[:, :3]
    while row[0, -1] != EOS and row.shape[1] < 30:
        row = torch.cat([row, model(row)[:, -1:].argmax(-1)], 1)
print(row)
