"""A questionnaire: twelve answers of 1 to 5, many people answer alike and end differently; one-hot by embeddings; class prior unbalanced a little."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

rng = np.random.default_rng(6)
torch.manual_seed(6)
mood = rng.normal(size=1500)
answers = np.clip(np.round(3 + 1.5 * mood[:, None] + 0.4 * rng.normal(size=(1500, 6))), 1, 5).astype(np.int64)
outcome = (rng.random(1500) < 1 / (1 + np.exp(-1.5 * mood - 0.5))).astype(np.float32)
data = TensorDataset(torch.from_numpy(answers), torch.from_numpy(outcome))
train, val = random_split(data, [1200, 300], generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(24, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.out(self.embed(x)).squeeze(1)


net, criterion = Net(), nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    net.train()
    for x, y in DataLoader(train, 60, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        total = sum(criterion(net(x), y).item() * len(y) for x, y in DataLoader(val, 100))
    print(epoch, total / len(val))
