"""Encoder-decoder with padding masks, teacher forcing and ignore_index; warm-up of the rate by LambdaLR, stepped per batch."""
import math

import torch
from torch import nn

torch.manual_seed(10)
PAD, BOS, EOS, V = 0, 1, 2, 14


def pairs(n):
    source = torch.zeros(n, 8, dtype=torch.long)
    target = torch.zeros(n, 10, dtype=torch.long)
    for k in range(n):
        size = int(torch.randint(4, 9, (1,)))
        word = torch.randint(3, V, (size,))
        source[k, :size] = word
        target[k, :size + 2] = torch.cat([torch.tensor([BOS]), word.flip(0), torch.tensor([EOS])])
    return source, target


class Translator(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Embedding(V, d, padding_idx=PAD)
        self.register_buffer("place", torch.sin(torch.arange(12)[:, None] * torch.exp(-torch.arange(d) / d * math.log(100))))
        self.core = nn.Transformer(d, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, V)

    def forward(self, source, target):
        causal = torch.triu(torch.ones(target.size(1), target.size(1), dtype=torch.bool), 1)
        s = self.embed(source) + self.place[: source.size(1)]
        t = self.embed(target) + self.place[: target.size(1)]
        h = self.core(s, t, tgt_mask=causal, src_key_padding_mask=source == PAD, tgt_key_padding_mask=target == PAD,
                      memory_key_padding_mask=source == PAD)
        return self.out(h)


model = Translator()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 20, (20 / (s + 1)) ** 0.5))
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
source, target = pairs(600)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(520).split(40):
        s, t = source[rows], target[rows]
        logits = model(s, t[:, :-1])
        loss = criterion(logits.reshape(-1, V), t[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm.step()
    model.eval()
    with torch.no_grad():
        s, t = source[520:], target[520:]
        print(epoch, loss.item(), criterion(model(s, t[:, :-1]).transpose(1, 2), t[:, 1:]).item())
