# twin: draw(120, seed + 1) => draw(120, seed + 1, rest=True)
"""A closure draws index sets; the validation rows are drawn from all rows instead of from the rest."""
import torch
from torch import nn


def make_draw(n):
    taken = set()

    def draw(k, seed, rest=False):
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
        rows = [i for i in order if not rest or i not in taken][:k]
        taken.update(rows)
        return torch.tensor(rows)
    return draw


torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
draw, seed = make_draw(600), 3
train, val = draw(400, seed), draw(120, seed + 1)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for rows in train[torch.randperm(len(train))].split(40):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(x[val]).argmax(1) == y[val]).float().mean().item())  # expect: data/split-overlap
