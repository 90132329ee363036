"""A meter class averages the accuracies of batches of unequal size."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    @property
    def mean(self):
        return sum(self.values) / len(self.values)


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


torch.manual_seed(0)
x = torch.randn(330, 10)
y = (x[:, 0] + 0.8 * torch.randn(330) > 0).long()
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
train, valid = DataLoader(TensorDataset(x[:256], y[:256]), 32, shuffle=True), DataLoader(TensorDataset(x[256:], y[256:]), 70)
for epoch in range(4):
    net.train()
    for rows, labels in train:
        loss = nn.functional.cross_entropy(net(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    meter = Meter()
    with torch.no_grad():
        for rows, labels in valid:
            meter.update(accuracy(net(rows), labels))
    print("accuracy", meter.mean)  # expect: record/metric-mistake
