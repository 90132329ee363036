"""Knowledge distillation: KL at temperature 4 times T squared plus a hard loss; the teacher in eval and under no_grad."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split((x / 16).astype("float32"), y, test_size=0.25, random_state=0, stratify=y)
train = DataLoader(TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)), batch_size=64, shuffle=True, drop_last=True)
test_x, test_y = torch.from_numpy(x_test), torch.from_numpy(y_test)


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


def distillation_loss(student, teacher, labels, T=4.0, alpha=0.7):
    soft = F.kl_div(F.log_softmax(student / T, dim=1), F.softmax(teacher / T, dim=1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(student, labels)


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(test_x).argmax(1) == test_y).float().mean().item()


teacher, student = Teacher(), nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(6):
    teacher.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        F.cross_entropy(teacher(inputs), labels).backward()
        optimizer.step()
print("teacher", accuracy(teacher))
optimizer = torch.optim.Adam(student.parameters(), lr=4e-3)
for epoch in range(8):
    student.train()
    for inputs, labels in train:
        with torch.no_grad():
            guidance = teacher(inputs)
        loss = distillation_loss(student(inputs), guidance, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), accuracy(student))
