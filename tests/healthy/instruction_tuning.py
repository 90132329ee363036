"""Prompt-masked labels: -100 on the prompt and on padding, a causal model trained on answers only; prefix parameters before a frozen base."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

random.seed(2)
torch.manual_seed(2)
PAD, SEP, END = 0, 1, 2


def example():
    digits = [random.randrange(3, 13) for _ in range(random.randint(2, 6))]
    return digits + [SEP], sorted(digits) + [END]


def collate(rows):
    width = max(len(p) + len(a) for p, a in rows)
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), -100)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, (prompt, answer) in enumerate(rows):
        n = len(prompt) + len(answer)
        ids[i, :n] = torch.tensor(prompt + answer)
        labels[i, len(prompt):n] = torch.tensor(answer)
        mask[i, :n] = True
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class Causal(nn.Module):
    def __init__(self, dim=48, prefix=0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(13, dim), nn.Embedding(24, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 13)
        self.prefix = nn.Parameter(torch.randn(prefix, dim) * 0.1) if prefix else None

    def forward(self, input_ids, attention_mask, labels=None):
        h = self.tokens(input_ids) + self.places(torch.arange(input_ids.size(1)))
        keep = attention_mask
        if self.prefix is not None:
            h = torch.cat([self.prefix.expand(len(h), -1, -1), h], 1)
            keep = F.pad(keep, (len(self.prefix), 0), value=True)
        causal = torch.triu(torch.ones(h.size(1), h.size(1), dtype=torch.bool), 1)
        h = self.body(h, mask=causal, src_key_padding_mask=~keep)
        if self.prefix is not None:
            h = h[:, len(self.prefix):]
        logits = self.head(h)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return loss, logits


def run(model, parameters, epochs, lr):
    optimizer = torch.optim.AdamW(parameters, lr=lr)
    for epoch in range(epochs):
        model.train()
        for batch in loader:
            loss, _ = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        print(epoch, loss.item())


loader = DataLoader([example() for _ in range(320)], batch_size=32, shuffle=True, collate_fn=collate)
base = Causal()
run(base, list(base.parameters()), 4, 3e-3)
tuned = Causal(prefix=4)
tuned.load_state_dict(base.state_dict(), strict=False)
for name, parameter in tuned.named_parameters():
    parameter.requires_grad = name == "prefix"
run(tuned, [tuned.prefix], 2, 1e-2)
