"""A generator of the program's own pads number by number; the epoch is a function."""
import torch
from torch import nn

torch.manual_seed(0)
SAMPLES = [([(13 * i + j) % 1000 for j in range(100 + i % 20)], i % 2) for i in range(640)]


def batches(samples, size):
    order = torch.randperm(len(samples)).tolist()
    for begin in range(0, len(order), size):
        chosen = [samples[i] for i in order[begin:begin + size]]
        longest = max(len(tokens) for tokens, _ in chosen)
        padded = torch.zeros(size, longest, dtype=torch.long)
        for row, (tokens, _) in enumerate(chosen):
            for column, token in enumerate(tokens):
                padded[row, column] = token  # expect: speed/input-bound
        yield {"tokens": padded, "labels": torch.tensor([label for _, label in chosen])}


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


def train_epoch(model, optimizer):
    for batch in batches(SAMPLES, 32):
        tokens, labels = batch["tokens"].to("cpu"), batch["labels"].to("cpu")
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()


model = Bag()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    train_epoch(model, optimizer)
