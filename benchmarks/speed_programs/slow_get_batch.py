"""Batches are cut by a function of the program's own, which parses its text anew each time."""
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
TEXT = " ".join(str((37 * i) % 97) for i in range(20_000))
BATCH, LENGTH = 16, 32


def get_batch(split):
    tokens = [int(word) for word in TEXT.split()]  # expect: speed/input-bound
    tokens = tokens[:18_000] if split == "train" else tokens[18_000:]
    starts = [random.randrange(len(tokens) - LENGTH - 1) for _ in range(BATCH)]
    x = torch.tensor([tokens[start:start + LENGTH] for start in starts])
    y = torch.tensor([tokens[start + 1:start + LENGTH + 1] for start in starts])
    return x, y


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(97, 32)
        self.head = nn.Linear(32, 97)

    def forward(self, x):
        return self.head(self.table(x))


model = Bigram()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
X, Y = get_batch("train")
for _ in range(400):
    logits = model(X)
    loss = nn.functional.cross_entropy(logits.view(-1, 97), Y.view(-1))
    X, Y = get_batch("train")
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
