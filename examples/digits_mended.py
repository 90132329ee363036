"""Handwritten digits with a small convolutional network. The mended twin of digits.py."""
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

data = np.load(Path(__file__).with_name("digits.npz"))
images = torch.from_numpy(data["images"]).float().unsqueeze(1)
labels = torch.from_numpy(data["labels"]).long()
order = torch.randperm(len(labels))
train, valid = order[:1400], order[1400:]
mean, std = images[train].mean(), images[train].std()
images = (images - mean) / std
train_loader = DataLoader(TensorDataset(images[train], labels[train]), batch_size=50, shuffle=True)
valid_loader = DataLoader(TensorDataset(images[valid], labels[valid]), batch_size=200)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))

    def forward(self, image):
        return self.head(self.features(image))


model = DigitNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for image, label in train_loader:
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(label)
    model.eval()
    with torch.no_grad():
        hits = sum((model(image).argmax(1) == label).sum().item() for image, label in valid_loader)
    print(f"epoch {epoch + 1:2d}  train loss {total / len(train):.3f}  valid accuracy {hits / len(valid):.3f}")
