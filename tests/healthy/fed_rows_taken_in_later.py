"""Self-training: rows that were scored without labels are trained on in later rounds; then a head on the frozen layers below."""
# needs: sklearn
import torch
from sklearn.datasets import load_digits
from torch import nn

table = load_digits()
x, y = torch.tensor(table.data / 16, dtype=torch.float32), torch.tensor(table.target)
torch.manual_seed(0)
body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU())
model = nn.Sequential(body, nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
known, pool, held_out = torch.arange(200), torch.arange(200, 1300), torch.arange(1300, len(x))
rows, labels = known, y[known]
for taking_in in range(4):
    model.train()
    for _epoch in range(6):
        for part in torch.randperm(len(rows)).split(40):
            loss = nn.functional.cross_entropy(model(x[rows[part]]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        sure, guess = model(x[pool]).softmax(1).max(1)
        right = (model(x[held_out]).argmax(1) == y[held_out]).float().mean().item()
    taken = sure > 0.9
    rows, labels = torch.cat([known, pool[taken]]), torch.cat([y[known], guess[taken]])
    print(taking_in, loss.item(), int(taken.sum()), right)

body.eval().requires_grad_(False)
head = nn.Linear(32, 10)
optimizer = torch.optim.Adam(head.parameters(), lr=3e-3)
for _epoch in range(4):
    for part in torch.randperm(1300).split(50):
        loss = nn.functional.cross_entropy(head(body(x[part])), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(loss.item(), (head(body(x[held_out])).argmax(1) == y[held_out]).float().mean().item())
