"""Padded rows through packed sequences, the state at the last real token, and a convolution with a maximum over time."""
import torch
import torch.nn.functional as F
from torch import nn

PAD, VOCAB = 0, 30


def batch(count=32):
    width = int(torch.randint(12, 18, ()))
    lengths = torch.randint(3, width + 1, (count, 1))
    lengths[0] = width
    tokens = torch.randint(1, VOCAB, (count, width))
    tokens[:, 1] = torch.randint(1, 4, (count,))
    return tokens.masked_fill(torch.arange(width) >= lengths, PAD), tokens[:, 1] - 1, lengths[:, 0]


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16, padding_idx=PAD)
        self.rnn = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 3)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        last = self.rnn(packed)[1]
        return self.head(torch.cat([last[0], last[1]], -1))


class LastReal(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16, padding_idx=PAD)
        self.rnn = nn.LSTM(16, 16, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens, lengths):
        return self.head(self.rnn(self.embed(tokens))[0][torch.arange(len(tokens)), lengths - 1])


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16, padding_idx=PAD)
        self.convs = nn.ModuleList(nn.Conv1d(16, 16, size, padding=size // 2) for size in (2, 3))
        self.head = nn.Linear(32, 3)

    def forward(self, tokens, lengths):
        h = self.embed(tokens).transpose(1, 2)
        return self.head(torch.cat([F.relu(conv(h)).max(-1).values for conv in self.convs], 1))


for kind in (Packed, LastReal, Convolved):
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(40):
        tokens, labels, lengths = batch()
        loss = F.cross_entropy(model(tokens, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
