
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(900, 20)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3:6].sum(1) > 0).long()
teacher = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3))
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(10):
    for i in torch.randperm(800).split(50):
        loss = F.cross_entropy(teacher(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
student = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
opt2 = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(10):
    student.train()
    for i in torch.randperm(800).split(50):
        with torch.no_grad():
            soft = F.softmax(teacher(x[i]) / 2, -1)  # expect: mode/teacher-in-train
        logits = student(x[i])
        loss = F.kl_div(F.log_softmax(logits / 2, -1), soft, reduction="batchmean") * 4
        opt2.zero_grad()
        loss.backward()
        opt2.step()
    student.eval()
    with torch.no_grad():
        print(epoch, (student(x[800:]).argmax(1) == y[800:]).float().mean().item())
