"""A linear-chain CRF over a BiLSTM: forward algorithm by logsumexp with masks, Viterbi in evaluation; sentences of many lengths."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

random.seed(4)
torch.manual_seed(4)
TAGS, WORDS = 3, 20


def sentence():
    n, words, tags, inside = random.randint(4, 11), [], [], False
    for _ in range(n):
        w = random.randrange(1, WORDS)
        tag = 1 if w % 5 == 0 else 2 if inside and w % 2 else 0
        inside = tag > 0
        words.append(w)
        tags.append(tag)
    return torch.tensor(words), torch.tensor(tags)


data = [sentence() for _ in range(210)]


class CRF(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, hidden, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * hidden, TAGS)
        self.transition = nn.Parameter(torch.zeros(TAGS, TAGS))
        self.start, self.end = nn.Parameter(torch.zeros(TAGS)), nn.Parameter(torch.zeros(TAGS))

    def emissions(self, words):
        return self.emit(self.lstm(self.embed(words))[0])

    def forward(self, words, tags, mask):
        e = self.emissions(words)
        batch = torch.arange(len(words))
        score = self.start[tags[:, 0]] + e[batch, 0, tags[:, 0]]
        alpha = self.start + e[:, 0]
        for t in range(1, words.size(1)):
            m = mask[:, t]
            step = self.transition[tags[:, t - 1], tags[:, t]] + e[batch, t, tags[:, t]]
            score = score + step * m
            following = torch.logsumexp(alpha.unsqueeze(2) + self.transition + e[:, t].unsqueeze(1), 1)
            alpha = torch.where(m.unsqueeze(1).bool(), following, alpha)
        last = tags.gather(1, mask.sum(1, keepdim=True).long() - 1).squeeze(1)
        return (torch.logsumexp(alpha + self.end, 1) - score - self.end[last]).mean()

    @torch.no_grad()
    def decode(self, words):
        e = self.emissions(words.unsqueeze(0))[0]
        best, back = self.start + e[0], []
        for emission in e[1:]:
            scores = best.unsqueeze(1) + self.transition + emission
            best, pointers = scores.max(0)
            back.append(pointers)
        tag = int((best + self.end).argmax())
        path = [tag]
        for pointers in reversed(back):
            tag = int(pointers[tag])
            path.append(tag)
        return torch.tensor(path[::-1])


model = CRF()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
train, test = data[:180], data[180:]
for epoch in range(3):
    random.shuffle(train)
    model.train()
    for i in range(0, len(train), 30):
        words, tags = zip(*train[i:i + 30])
        mask = pad_sequence([torch.ones(len(w)) for w in words], True)
        loss = model(pad_sequence(words, True), pad_sequence(tags, True), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = sum((model.decode(w) == t).sum().item() for w, t in test)
    print(epoch, loss.item(), right / sum(len(t) for _, t in test))
