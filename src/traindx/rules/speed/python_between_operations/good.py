import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
batches = list(zip(x.split(32), (x.sum(1) > 0).long().split(32)))
model = nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
words = [str(number) for number in range(20_000)]
longest = sorted(words, key=lambda word: (len(word), word[::-1]))[-1]
for _ in range(3):
    for xb, yb in batches:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
