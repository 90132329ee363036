import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(500, 7)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
order = torch.randperm(500)
splits = {"train": order[:380], "valid": order[380:]}
model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


@torch.no_grad()
def scores():
    return {name: (model(x[rows]).argmax(1) == y[rows]).float().mean().item() for name, rows in splits.items()}


for _ in range(5):
    for part in splits["train"][torch.randperm(380)].split(38):
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(scores())
with torch.no_grad():
    picture = model(x).softmax(1)  # for a plot over all rows
