"""Windows of a few recordings, split at random: overlapping windows of one recording on both sides (identical windows after padding); and exact duplicates across."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(7)
recordings = torch.randn(40, 32).repeat_interleave(12, 0)
labels = (recordings[:, :4].sum(1) > 0).long()
data = TensorDataset(recordings, labels)
train, val = random_split(data, [400, 80])
train_loader, val_loader = DataLoader(train, 20, shuffle=True), DataLoader(val, 40)  # expect: data/split-overlap
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for a, b in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(a), b)
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in val_loader)
    print(epoch, right / 80)
