"""PGD inside training: the inner loop climbs on the input, on purpose, with the model in eval mode for the attack."""
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(9)
x = torch.randn(600, 16)
y = (x[:, :4].sum(1) > 0).long() + (x[:, 4:8].sum(1) > 1).long()
model = nn.Sequential(nn.Linear(16, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def attack(inputs, labels, eps=0.1, steps=3):
    model.eval()
    delta = torch.zeros_like(inputs).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = cross_entropy(model(inputs + delta), labels)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + 0.05 * grad.sign()).clamp(-eps, eps)
    model.train()
    return inputs + delta


for epoch in range(8):
    model.train()
    for rows in torch.randperm(500).split(50):
        loss = cross_entropy(model(attack(x[rows], y[rows])), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        clean = (model(x[500:]).argmax(1) == y[500:]).float().mean().item()
    attacked = attack(x[500:], y[500:])
    model.eval()
    robust = (model(attacked).argmax(1) == y[500:]).float().mean().item()
    print(epoch, clean, robust)
