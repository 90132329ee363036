# allow: numeric/nonfinite
import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(1, 8, (192, 6))
tags = torch.full_like(words, -100)
model = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for _ in range(3):
    for rows in torch.randperm(192).split(32):
        loss = criterion(model(words[rows]).transpose(1, 2), tags[rows])  # expect: loss/all-ignored
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
