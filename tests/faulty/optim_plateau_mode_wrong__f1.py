# needs: sklearn
# twin: ReduceLROnPlateau(optimizer, => ReduceLROnPlateau(optimizer, mode="max",
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import f1_score
from torch import nn

table = load_breast_cancer()
x, y = torch.tensor(table.data, dtype=torch.float32), torch.tensor(table.target, dtype=torch.float32)
x = (x - x[:400].mean(0)) / x[:400].std(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)  # expect: optim/plateau-mode-wrong
for epoch in range(16):
    model.train()
    for rows in torch.randperm(400).split(25):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = (model(x[400:]).squeeze(1) > 0).float()
    quality = f1_score(y[400:].numpy(), found.numpy())
    watched.step(quality)
