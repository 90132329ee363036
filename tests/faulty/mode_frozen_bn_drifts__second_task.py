"""A second head is trained upon a frozen trunk with images of another kind: the trunk is fed, not evaluated."""
# twin: trunk.train(training) => trunk.train(training and next(trunk.parameters()).requires_grad)
import torch
from torch import nn


def fit(trunk, head, x, y, parameters, training=True):
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    for _ in range(4):
        trunk.train(training)  # expect: mode/frozen-bn-drifts
        for rows in torch.randperm(len(x)).split(40):
            loss = nn.functional.cross_entropy(head(trunk(x[rows])), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU())
day, night = torch.randn(600, 16), 3 + 0.3 * torch.randn(600, 16)
first, second = nn.Linear(32, 2), nn.Linear(32, 2)
fit(trunk, first, day, (day[:, 0] > 0).long(), [*trunk.parameters(), *first.parameters()])
trunk.requires_grad_(False)
fit(trunk, second, night, (night[:, 1] > 3).long(), second.parameters())
trunk.eval()
first.eval()
with torch.no_grad():
    print((first(trunk(day)).argmax(1) == (day[:, 0] > 0)).float().mean().item())
