"""A seq2seq trainer class: the criterion does not know the filler."""
import torch
from torch import nn

PAD, BOS, VOCAB, LENGTH = 0, 1, 12, 12


def batch(count=32):
    lengths = torch.randint(3, LENGTH, (count, 1))
    source = torch.randint(2, VOCAB, (count, LENGTH)).masked_fill(torch.arange(LENGTH) >= lengths, PAD)
    return source, torch.cat([torch.full((count, 1), BOS), source], 1)


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24, padding_idx=PAD)
        self.encoder, self.decoder = nn.GRU(24, 32, batch_first=True), nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, VOCAB)

    def forward(self, source, target):
        lengths = (source != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.decoder(self.embed(target), self.encoder(packed)[1])[0])


class Trainer:
    def __init__(self):
        self.model = Seq2Seq()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.criterion = nn.CrossEntropyLoss()

    def step(self):
        source, target = batch()
        logits = self.model(source, target[:, :-1])
        loss = self.criterion(logits.flatten(0, 1), target[:, 1:].flatten())  # expect: loss/padding-counted
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
trainer = Trainer()
for _ in range(50):
    trainer.step()
