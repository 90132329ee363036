"""Text classification with EmbeddingBag: a batch is one long row of tokens and the offsets where texts begin."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(2)
torch.manual_seed(2)


def text():
    topic = random.randrange(3)
    return [random.randrange(60) if random.random() < 0.6 else 60 + 10 * topic + random.randrange(10) for _ in range(random.randint(5, 25))], topic


def collate(rows):
    labels = torch.tensor([topic for _, topic in rows])
    lengths = torch.tensor([0] + [len(words) for words, _ in rows[:-1]])
    return labels, torch.tensor([w for words, _ in rows for w in words]), lengths.cumsum(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.EmbeddingBag(90, 16), nn.Linear(16, 3)
        self.embedding.weight.data.uniform_(-0.5, 0.5)
        self.fc.weight.data.uniform_(-0.5, 0.5)
        self.fc.bias.data.zero_()

    def forward(self, words, offsets):
        return self.fc(self.embedding(words, offsets))


data = [text() for _ in range(900)]
train, test = DataLoader(data[:760], 20, shuffle=True, collate_fn=collate), DataLoader(data[760:], 20, collate_fn=collate)
model = Classifier()
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=2.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
for epoch in range(5):
    model.train()
    for labels, words, offsets in train:
        optimizer.zero_grad()
        criterion(model(words, offsets), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(w, o).argmax(1) == y).sum().item() for y, w, o in test) / 140)
