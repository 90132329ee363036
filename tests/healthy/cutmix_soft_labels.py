"""CutMix on small pictures: boxes pasted in place from a shuffled batch, two labels weighed by area; label smoothing on top; per-epoch accuracy."""
import math
import random

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
mean, std = images[order[:1400]].mean(), images[order[:1400]].std()
images = (images - mean) / std
train = DataLoader(TensorDataset(images[order[:1400]], labels[order[:1400]]), 70, shuffle=True)
test = DataLoader(TensorDataset(images[order[1400:]], labels[order[1400:]]), 200)


def box(size, lam):
    cut = int(size * math.sqrt(1 - lam))
    cx, cy = random.randrange(size), random.randrange(size)
    return max(cx - cut // 2, 0), min(cx + cut // 2, size), max(cy - cut // 2, 0), min(cy + cut // 2, size)


net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=6, steps_per_epoch=len(train))
for epoch in range(6):
    net.train()
    for x, y in train:
        if random.random() < 0.5:
            mix = torch.randperm(len(x))
            lam = random.betavariate(1, 1)
            x1, x2, y1, y2 = box(8, lam)
            x = x.clone()
            x[:, :, y1:y2, x1:x2] = x[mix, :, y1:y2, x1:x2]
            lam = 1 - (x2 - x1) * (y2 - y1) / 64
            out = net(x)
            loss = lam * criterion(out, y) + (1 - lam) * criterion(out, y[mix])
        else:
            loss = criterion(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
    print(epoch, hits / len(test.dataset))
