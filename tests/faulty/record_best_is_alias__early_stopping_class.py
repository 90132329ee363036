"""An early-stopping class remembers the best weights by reference."""
import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.bad, self.best, self.state = patience, 0, float("inf"), None

    def __call__(self, loss, model):
        if loss < self.best:
            self.best, self.bad = loss, 0
            self.state = model.state_dict()  # expect: record/best-is-alias
        else:
            self.bad += 1
        return self.bad > self.patience


torch.manual_seed(0)
x = torch.randn(160, 20)
y = (x[:, 0] + torch.randn(160) > 0).long()
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
stopping = EarlyStopping(5)
for epoch in range(40):
    net.train()
    for rows in torch.randperm(96).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        held_out = nn.functional.cross_entropy(net(x[96:]), y[96:]).item()
    if stopping(held_out, net):
        break
net.load_state_dict(stopping.state)
print(stopping.best)
