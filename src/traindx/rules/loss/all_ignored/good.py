import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(1, 8, (192, 6))
tags = (words % 4).masked_fill(torch.rand(192, 6) < 0.5, -100)
model = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for _ in range(3):
    for rows in torch.randperm(192).split(32):
        loss = criterion(model(words[rows]).transpose(1, 2), tags[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
