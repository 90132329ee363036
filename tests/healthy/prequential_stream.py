"""Online learning: each batch of a drifting stream is first predicted (eval, no_grad), then trained on; a running accuracy is kept."""
import torch
from torch import nn

torch.manual_seed(0)


def stream(n=160, size=20):
    for t in range(n):
        w = torch.tensor([1.0, t / n, 1 - t / n, 0, 0])
        x = torch.randn(size, 5)
        yield x, (x @ w > 0).long()


model = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = right = 0
for t, (x, y) in enumerate(stream()):
    model.eval()
    with torch.no_grad():
        right += (model(x).argmax(1) == y).sum().item()
        seen += len(y)
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 40 == 39:
        print(t, f"prequential accuracy {right / seen:.3f}")
