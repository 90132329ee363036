# needs: lightning
# twin: nn.CrossEntropyLoss() => nn.CrossEntropyLoss(ignore_index=0)
# allow: shape/padding-leaks
"""A Lightning tagger whose criterion counts the tag of the padding."""
import random

import lightning as L
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

L.seed_everything(0)


def sentence():
    words = torch.tensor([random.randrange(1, 30) for _ in range(random.choice((4, 5, 6, 15, 18)))])
    return words, 1 + (words % 3 == 0).long() + (words > 20).long()


def collate(rows):
    words, tags = zip(*rows)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True)


class Tagger(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 4)
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, batch, _):
        words, tags = batch
        logits = self.out(self.rnn(self.embed(words))[0])
        return self.criterion(logits.transpose(1, 2), tags)  # expect: loss/padding-counted

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Tagger(), DataLoader([sentence() for _ in range(320)], 16, shuffle=True, collate_fn=collate))
