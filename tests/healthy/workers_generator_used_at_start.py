import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

class Noisy(Dataset):
    def __init__(self, x, y, transform=None):
        self.rng = np.random.default_rng(0)
        x = x[self.rng.permutation(len(x))] * 0 + x
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        return x, self.y[i]

if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    data = np.random.default_rng(1).normal(size=(256, 8)).astype(np.float32)
    labels = (data[:, 0] > 0).astype(np.int64)
    loader = DataLoader(Noisy(data, labels), 32, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
