"""Reload the best checkpoint by rebuilding the model; the optimizer is forgotten."""
import copy, torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import train_test_split
X, y = load_wine(return_X_y=True)
a, b, c, d = train_test_split(X, y, stratify=y, random_state=0)
s = StandardScaler().fit(a)
a, b = torch.tensor(s.transform(a)).float(), torch.tensor(s.transform(b)).float()
c, d = torch.tensor(c), torch.tensor(d)
torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))


model = build()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)  # expect: optim/params-stale
best, best_state = 1e9, None
for epoch in range(60):
    model.train()
    for idx in torch.randperm(len(a)).split(32):
        loss = F.cross_entropy(model(a[idx]), c[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        v = F.cross_entropy(model(b), d).item()
    if v < best:
        best, best_state = v, copy.deepcopy(model.state_dict())
    if epoch == 10:
        model = build()
        model.load_state_dict(best_state)
    if epoch % 10 == 0:
        print(epoch, v)
