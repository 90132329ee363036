import torch
from torch import nn

torch.manual_seed(0)
PAD = 0
lengths = torch.randint(3, 10, (192,))
words = torch.randint(1, 8, (192, 12))
words[torch.arange(12) >= lengths[:, None]] = PAD
tags = torch.where(words == PAD, PAD, 1 + words % 3)
model = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for _ in range(6):
    for rows in torch.randperm(192).split(32):
        loss = criterion(model(words[rows]).transpose(1, 2), tags[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
