# allow: curve/oscillating, curve/spike, curve/plateau, curve/train-val-gap
import torch
from torch import nn

torch.manual_seed(8)
y = torch.randint(0, 5, (500,)).sort().values
x = torch.randn(500, 8) + 1.5 * nn.functional.one_hot(y, 8)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def epoch_of(size):
    for start in range(0, len(x), size):
        scores = model(x[start:start + size])  # expect: data/not-shuffled
        loss = nn.functional.cross_entropy(scores, y[start:start + size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for _ in range(5):
    epoch_of(25)
