"""Batches of like lengths (a batch sampler that shuffles buckets), packed LSTM, uneven batch sizes, weighted mean of the losses."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Sampler

random.seed(5)
torch.manual_seed(5)


class BucketSampler(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: (self.lengths[i], random.random()))
        batches = [order[i:i + self.size] for i in range(0, len(order), self.size)]
        random.shuffle(batches)
        yield from batches

    def __len__(self):
        return (len(self.lengths) + self.size - 1) // self.size


def sentence():
    words = [random.randrange(1, 30) for _ in range(random.randint(4, 20))]
    return torch.tensor(words), int(sum(w < 10 for w in words) * 3 > len(words))


data = [sentence() for _ in range(610)]


def collate(rows):
    words, labels = zip(*rows)
    return pad_sequence(words, batch_first=True), torch.tensor([len(w) for w in words]), torch.tensor(labels)


train, test = data[:500], data[500:]
train_loader = DataLoader(train, batch_sampler=BucketSampler([len(w) for w, _ in train], 24), collate_fn=collate)
test_loader = DataLoader(test, batch_sampler=BucketSampler([len(w) for w, _ in test], 24), collate_fn=collate)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(48, 2)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.out(self.drop(torch.cat([hidden[0], hidden[1]], 1)))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for words, lengths, labels in train_loader:
        loss = nn.functional.cross_entropy(model(words, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for words, lengths, labels in test_loader:
            right += (model(words, lengths).argmax(1) == labels).sum().item()
            seen += len(labels)
    print(f"epoch {epoch}: loss {total / len(train):.3f}, accuracy {right / seen:.3f}")
