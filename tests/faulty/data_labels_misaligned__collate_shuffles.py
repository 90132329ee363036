# allow: curve/plateau, optim/lr-too-low, data/conflicting-labels, curve/noise-sized-gain
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
y = torch.arange(300) % 3
x = torch.randn(300, 5) + 2 * nn.functional.one_hot(y, 5)


def collate(pairs):
    inputs = torch.stack([a for a, _ in pairs])
    targets = torch.stack([b for _, b in pairs])
    return inputs, targets[torch.randperm(len(targets))]


loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True, collate_fn=collate)  # expect: data/labels-misaligned
model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
