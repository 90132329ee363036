"""Noisy student: a teacher is trained on few labels, labels the rest (eval, no_grad), a larger student with dropout and noise learns from both."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(7)


def sample(n):
    labels = torch.randint(0, 4, (n,))
    centres = torch.tensor([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0], [0, 0, 0, 2.0]])
    return centres[labels] + torch.randn(n, 4) * 0.9, labels


def net(width, p):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 4))


def fit(model, loader, epochs, noise=0.0):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    for _ in range(epochs):
        model.train()
        for x, target in loader:
            logits = model(x + noise * torch.randn_like(x))
            loss = F.cross_entropy(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def pseudo_label(teacher, x, threshold=0.6):
    teacher.eval()
    probabilities = teacher(x).softmax(1)
    confident = probabilities.max(1).values > threshold
    return x[confident], probabilities[confident]


labelled, labels = sample(120)
unlabelled, _ = sample(800)
test_x, test_y = sample(400)
teacher = net(32, 0.0)
fit(teacher, DataLoader(TensorDataset(labelled, F.one_hot(labels, 4).float()), 16, shuffle=True), 10)
print("teacher", accuracy(teacher, test_x, test_y))
for generation in range(2):
    pseudo = TensorDataset(*pseudo_label(teacher, unlabelled))
    both = ConcatDataset([TensorDataset(labelled, F.one_hot(labels, 4).float()), pseudo])
    student = net(64, 0.3)
    fit(student, DataLoader(both, 32, shuffle=True), 6, noise=0.3)
    print("student", generation, len(pseudo), accuracy(student, test_x, test_y))
    teacher = student
