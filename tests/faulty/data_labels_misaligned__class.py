# twin: self.labels = sorted(zip(self.names, labels)) => self.labels = list(zip(self.names, labels))
"""A Dataset class sorts its labels by file name; the pictures stay in the order in which they were read."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Pictures(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        labels = torch.randint(0, 4, (n,), generator=g).tolist()
        centres = 2 * torch.eye(4).repeat(1, 4)
        self.pictures = torch.stack([centres[label] + torch.randn(16, generator=g) for label in labels])
        self.names = [f"img{int(k)}.png" for k in torch.randperm(n, generator=g)]
        self.labels = sorted(zip(self.names, labels))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.pictures[i], self.labels[i][1]


train, test = DataLoader(Pictures(480, 1), 32, shuffle=True), DataLoader(Pictures(160, 2), 80)
net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(net(x), y)  # expect: data/labels-misaligned
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, sum(nn.functional.cross_entropy(net(x), y).item() for x, y in test) / 2)
