"""Every sample is decoded by Python in ``__getitem__``."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Encoded(Dataset):
    def __init__(self, samples=512):
        self.texts = [",".join(str((7 * i + j) % 256) for j in range(2048)) for i in range(samples)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        values = [int(word) / 255 for word in self.texts[index].split(",")]  # expect: speed/input-bound
        return torch.tensor(values[:64]), index % 10


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Encoded(), batch_size=32, shuffle=True)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
