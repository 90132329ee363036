"""Two heads, learned loss weights as plain parameters outside of the module."""
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
torch.manual_seed(0)
X, y = load_digits(return_X_y=True); X = torch.tensor(X).float() / 16; ink = X.sum(1, keepdim=True); ink = (ink - ink[:1400].mean()) / ink[:1400].std(); X = X - .3; y = torch.tensor(y)
trunk = nn.Sequential(nn.Linear(64, 96), nn.GELU()); cls, reg = nn.Linear(96, 10), nn.Linear(96, 1)
log_var = nn.Parameter(torch.zeros(2))
params = [*trunk.parameters(), *cls.parameters(), *reg.parameters()]
opt = torch.optim.AdamW([{"params": params, "weight_decay": .01}, {"params": [log_var], "lr": 1e-2, "weight_decay": 0}], lr=1e-3)
for e in range(8):
    for x, t, k in DataLoader(TensorDataset(X[:1400], y[:1400], ink[:1400]), 64, shuffle=True):
        h = trunk(x); a = F.cross_entropy(cls(h), t); b = F.mse_loss(reg(h), k)
        loss = (-log_var).exp()[0] * a + log_var[0] + .5 * (-log_var).exp()[1] * b + .5 * log_var[1]
        opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad(): h = trunk(X[1400:]); print(e, loss.item(), (cls(h).argmax(1) == y[1400:]).float().mean().item(), F.mse_loss(reg(h), ink[1400:]).item())
