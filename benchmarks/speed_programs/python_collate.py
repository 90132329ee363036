"""The collate function pads number by number."""
import torch
from torch import nn
from torch.utils.data import DataLoader


def pad_all(samples):
    longest = max(len(tokens) for tokens, _ in samples)
    batch = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (tokens, _) in enumerate(samples):
        for column, token in enumerate(tokens):
            batch[row, column] = token  # expect: speed/input-bound
    return batch, torch.tensor([label for _, label in samples])


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


torch.manual_seed(0)
data = [([(13 * i + j) % 1000 for j in range(100 + i % 20)], i % 2) for i in range(640)]
model = Bag()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=pad_all)
for _ in range(20):
    for tokens, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
