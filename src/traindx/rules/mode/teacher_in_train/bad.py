import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] * x[:, 1] > 0).long()


def net(width, rate):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(rate), nn.Linear(width, 2))


def fit(model, targets, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), targets(rows)).backward()
            optimizer.step()


teacher = net(64, 0.5)
fit(teacher, lambda rows: y[rows], 8)
teacher = nn.Sequential(*teacher).requires_grad_(False)
student = net(16, 0.0)
fit(student, lambda rows: teacher(x[rows]).softmax(1), 8)  # expect: mode/teacher-in-train
