"""The classic word model: text folded into columns [T, B], pieces of bptt in order, hidden states carried and detached, SGD lr divided when validation stalls."""
import math

import torch
from torch import nn

torch.manual_seed(7)
words = torch.tensor([(i * i + 3 * (i // 7)) % 23 for i in range(6000)])
train, val = words[:5000], words[5000:]


def batchify(data, size):
    n = len(data) // size
    return data[:n * size].view(size, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.encoder, self.rnn = nn.Dropout(0.1), nn.Embedding(23, 32), nn.LSTM(32, 32)
        self.decoder = nn.Linear(32, 23)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return self.decoder(self.drop(out)), hidden


def pieces(source, bptt=20):
    for i in range(0, len(source) - 1, bptt):
        n = min(bptt, len(source) - 1 - i)
        yield source[i:i + n], source[i + 1:i + 1 + n].reshape(-1)


model, criterion, lr, best = RNNModel(), nn.CrossEntropyLoss(), 5.0, None
train_data, val_data = batchify(train, 20), batchify(val, 10)


def evaluate():
    model.eval()
    total, hidden = 0.0, None
    with torch.no_grad():
        for x, y in pieces(val_data):
            out, hidden = model(x, hidden)
            total += len(x) * criterion(out.view(-1, 23), y).item()
    return total / (len(val_data) - 1)


for epoch in range(5):
    model.train()
    hidden = None
    for x, y in pieces(train_data):
        model.zero_grad()
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        out, hidden = model(x, hidden)
        loss = criterion(out.view(-1, 23), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
    score = evaluate()
    print(epoch, loss.item(), math.exp(score), lr)
    if best is None or score < best:
        best = score
    else:
        lr /= 4.0
