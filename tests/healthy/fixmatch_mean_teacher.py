"""Semi-supervised: labelled and unlabelled loaders zipped, weak and strong views, pseudo-labels over a threshold (none at first), an EMA teacher, a ramp-up from 0."""
import copy
import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
centres = 2.2 * torch.eye(4)
labels = torch.randint(0, 4, (1000,))
x = centres[labels] + torch.randn(1000, 4)
labelled = DataLoader(TensorDataset(x[:60], labels[:60]), 12, shuffle=True, drop_last=True)
unlabelled = DataLoader(TensorDataset(x[60:800]), 48, shuffle=True, drop_last=True)
student = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 4))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True)
step = 0
for epoch in range(8):
    for (a, y), (u,) in zip(itertools.cycle(labelled), unlabelled):
        weight = math.exp(-5 * (1 - min(1, step / 60)) ** 2) if step else 0.0
        weak, strong = u + 0.05 * torch.randn_like(u), u + 0.4 * torch.randn_like(u)
        with torch.no_grad():
            confidence, guess = teacher(weak).softmax(1).max(1)
        mask = (confidence > 0.9).float()
        supervised = F.cross_entropy(student(a), y)
        pseudo = (F.cross_entropy(student(strong), guess, reduction="none") * mask).mean()
        loss = supervised + weight * pseudo
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay = min(0.99, 1 - 1 / (step + 1))
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.mul_(decay).add_(fast, alpha=1 - decay)
        step += 1
    with torch.no_grad():
        print(epoch, loss.item(), mask.mean().item(), (teacher(x[800:]).argmax(1) == labels[800:]).float().mean().item())
