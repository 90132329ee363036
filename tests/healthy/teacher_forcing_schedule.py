"""Seq2seq with scheduled sampling: the decoder is fed the truth less and less; attention; masked loss; greedy decoding in eval."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS, SYMBOLS = 0, 1, 2, 12
random.seed(1)
torch.manual_seed(1)


class Reverse(Dataset):
    def __init__(self, n):
        self.rows = [[random.randrange(3, SYMBOLS) for _ in range(random.randint(3, 8))] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return torch.tensor(row), torch.tensor([BOS, *reversed(row), EOS])


def collate(batch):
    batch.sort(key=lambda pair: -len(pair[0]))
    sources, targets = zip(*batch)
    return pad_sequence(sources, True, PAD), torch.tensor([len(s) for s in sources]), pad_sequence(targets, True, PAD)


class Seq2Seq(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(2 * dim, SYMBOLS)

    def forward(self, source, lengths, target, teacher_forcing):
        packed = pack_padded_sequence(self.embed(source), lengths, batch_first=True)
        states, hidden = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.size(1))
        hidden = hidden[-1]
        blank = source == PAD
        token, outputs = target[:, 0], []
        context = torch.zeros_like(hidden)
        for t in range(1, target.size(1)):
            hidden = self.cell(torch.cat([self.embed(token), context], 1), hidden)
            scores = (states @ hidden.unsqueeze(2)).squeeze(2).masked_fill(blank, float("-inf"))
            context = (scores.softmax(1).unsqueeze(1) @ states).squeeze(1)
            logits = self.out(torch.cat([hidden, context], 1))
            outputs.append(logits)
            token = target[:, t] if random.random() < teacher_forcing else logits.argmax(1)
        return torch.stack(outputs, 1)


train = DataLoader(Reverse(448), 32, shuffle=True, collate_fn=collate)
val = DataLoader(Reverse(160), 32, collate_fn=collate)
model = Seq2Seq()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    forcing = max(0.3, 1.0 - 0.15 * epoch)
    for source, lengths, target in train:
        logits = model(source, lengths, target, forcing)
        loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    right = count = 0
    with torch.no_grad():
        for source, lengths, target in val:
            guess = model(source, lengths, target, 0.0).argmax(2)
            seen = target[:, 1:] != PAD
            right += ((guess == target[:, 1:]) & seen).sum().item()
            count += seen.sum().item()
    print(epoch, loss.item(), right / count)
