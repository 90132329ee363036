"""Distil a dropout teacher into a small student."""
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
a, b, c, d = train_test_split(X / 8.0 - 1, y, random_state=1)
train = TensorDataset(torch.tensor(a).float(), torch.tensor(c)); test = TensorDataset(torch.tensor(b).float(), torch.tensor(d))

def mlp(width, p):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, 10))

def accuracy(m):
    m.eval()
    with torch.no_grad():
        hit = sum((m(x).argmax(1) == t).sum().item() for x, t in DataLoader(test, 256))
    return hit / len(test)

teacher = mlp(192, 0.5)
opt = torch.optim.Adam(teacher.parameters(), 2e-3)
for epoch in range(8):
    teacher.train()
    for x, t in DataLoader(train, 64, shuffle=True):
        opt.zero_grad(); F.cross_entropy(teacher(x), t).backward(); opt.step()
print("teacher", accuracy(teacher))
student = mlp(24, 0.0)
opt = torch.optim.Adam(student.parameters(), 2e-3)
T = 3.0
for epoch in range(8):
    student.train()
    teacher.train()
    for x, t in DataLoader(train, 64, shuffle=True):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, dim=1)  # expect: mode/teacher-in-train
        out = student(x)
        kd = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean") * T * T
        loss = 0.7 * kd + 0.3 * F.cross_entropy(out, t)
        opt.zero_grad(); loss.backward(); opt.step()
    print(epoch, accuracy(student))
