"""Transfer in three acts: head alone, then everything with a new optimizer, then the head again while the body rests."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.body(x))


def loaders(keep, seed):
    d = load_digits()
    x, y = torch.tensor(d.data / 16 - 0.3, dtype=torch.float32), torch.tensor(d.target)
    rows = torch.nonzero((y >= keep[0]) & (y < keep[1])).flatten()
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    cut = int(0.7 * len(rows))
    pack = lambda r: TensorDataset(x[r], y[r] - keep[0])
    return DataLoader(pack(rows[:cut]), 32, shuffle=True), DataLoader(pack(rows[cut:]), 128)


def run(model, loader, optimizer, epochs):
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return torch.cat([model(x).argmax(1) == y for x, y in loader]).float().mean().item()


def main():
    torch.manual_seed(0)
    source, _ = loaders((0, 5), 0)
    train, test = loaders((5, 10), 1)
    model = Net(5)
    run(model, source, torch.optim.Adam(model.parameters(), lr=2e-3), 4)
    model.head = nn.Linear(48, 5)
    model.body.requires_grad_(False)
    run(model, train, torch.optim.Adam(model.head.parameters(), lr=3e-3), 4)
    print(f"head alone {accuracy(model, test):.3f}")
    model.body.requires_grad_(True)
    everything = torch.optim.AdamW([{"params": model.body.parameters(), "lr": 3e-4}, {"params": model.head.parameters(), "lr": 1e-3}])
    run(model, train, everything, 5)
    print(f"everything {accuracy(model, test):.3f}")
    model.body.requires_grad_(False)
    run(model, train, torch.optim.SGD(model.head.parameters(), lr=1e-2), 2)
    model.body.requires_grad_(True)
    print(f"head again {accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()
