import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(0, 20, (640, 12))
y = 0.5 * (words < 5).sum(1, keepdim=True).float() - 1.5
model = nn.Sequential(
    nn.EmbeddingBag(20, 16, mode="sum"),
    nn.BatchNorm1d(16),
    nn.Linear(16, 32),
    nn.ReLU(),
    nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for epoch in range(8):
    model.train()
    for rows in torch.randperm(512).split(32):
        optimizer.zero_grad()
        criterion(model(words[rows]), y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, criterion(model(words[512:]), y[512:]).item())
