import copy
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]

folder = tempfile.mkdtemp()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
target, average = copy.deepcopy(model), copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
live = {"model": model.state_dict()}  # saved at each epoch: meant to be the live one
shadow = average.state_dict()  # written to by hand
best, kept, clones = float("inf"), None, None
for epoch in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in model.state_dict().items():
            shadow[name].mul_(0.9).add_(value, alpha=0.1)
    target.load_state_dict(model.state_dict())
    average.load_state_dict(shadow)
    torch.save(live, os.path.join(folder, "last.pt"))
    model.eval()
    with torch.no_grad():
        score = nn.functional.cross_entropy(model(x_valid), y_valid).item()
        nn.functional.cross_entropy(target(x_valid), y_valid).item()
    model.train()
    if score < best:
        best = score
        kept = copy.deepcopy(model.state_dict())
        clones = {name: value.clone() for name, value in model.state_dict().items()}
        torch.save(model.state_dict(), os.path.join(folder, "best.pt"))
model.load_state_dict(kept)
model.load_state_dict(clones)
model.load_state_dict(torch.load(os.path.join(folder, "best.pt")))
model.load_state_dict(model.state_dict())
