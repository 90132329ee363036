"""Words without an order that is told by single places; the validation loss is summed, and divided by the program."""
import torch
from torch import nn

torch.manual_seed(1)
topic = torch.randint(0, 4, (1200,))
words = torch.where(torch.rand(1200, 12) < 0.35, 2 * topic[:, None] + torch.randint(0, 2, (1200, 12)), torch.randint(8, 400, (1200, 12)))
model = nn.Sequential(nn.EmbeddingBag(400, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(10):
    model.train()
    for rows in torch.randperm(1000).split(40):
        loss = nn.functional.cross_entropy(model(words[rows]), topic[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for rows in torch.arange(1000, 1200).split(50):
            total += nn.functional.cross_entropy(model(words[rows]), topic[rows], reduction="sum").item()
    print(epoch, loss.item(), total / 200)
