# allow: curve/train-val-gap, curve/overfitting
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
labels = torch.randint(0, 3, (600,))
images = torch.rand(600, 1, 8, 8) * 120 + 40 * labels[:, None, None, None] * (torch.arange(8) > 3)
train = DataLoader(TensorDataset(images[:480], labels[:480]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(images[480:], labels[480:]), batch_size=60)
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def accuracy(loader):
    net.eval()
    with torch.no_grad():
        return sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in loader) / 120  # expect: data/normalised-differently


for epoch in range(4):
    net.train()
    for xb, yb in train:
        xb = (xb - 90.0) / 45.0
        loss = nn.functional.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(accuracy(test))
