import sys

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

words = torch.randint(0, 9, (400, 9))
starts = words.argmax(1)


class Span(nn.Module):
    """Scores of positions: the loss and the argmax are over positions."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 9)
        self.score = nn.Linear(9, 1)

    def forward(self, words):
        return self.score(self.embed(words)).squeeze(-1)


span, flag = Span(), nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam([*span.parameters(), *flag.parameters()], lr=1e-2)
for epoch in range(6):
    span.train(), flag.train()
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(span(words[rows]), starts[rows])
        loss = loss + nn.functional.binary_cross_entropy_with_logits(flag(x[rows]), y[rows].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    span.eval(), flag.eval()
    right = careful = 0
    total = same_class = 0.0
    with torch.no_grad():
        for rows in torch.arange(256, 400).split(64):
            scores, logits = span(words[rows]), flag(x[rows])
            value = nn.functional.cross_entropy(scores, starts[rows])
            total += value.item() * len(rows)
            sys.stderr.write(f"\rbatch loss {value.item():.4f}")
            right += (scores.argmax(1) == starts[rows]).sum().item()
            careful += ((logits.sigmoid() > 0.3).long() == y[rows]).sum().item()
            same_class += (y[rows][:, None] == y[rows][None]).float().mean() * len(rows)
    print(f"\nepoch {epoch} loss {total / 144:.4f} accuracy {right / 144:.4f} {careful / 144:.4f} pairs {same_class / 144:.2f}")
