import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.rng = np.random.default_rng(0)  # expect: data/worker-seeds-equal

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        noise = self.rng.normal(0.0, 0.3, self.x.shape[1]).astype(np.float32)
        return self.x[i] + noise, self.y[i]


if __name__ == "__main__":
    torch.manual_seed(0)
    data = np.random.default_rng(1).normal(size=(256, 8)).astype(np.float32)
    labels = (data[:, 0] > 0).astype(np.int64)
    loader = DataLoader(Noisy(data, labels), batch_size=32, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
