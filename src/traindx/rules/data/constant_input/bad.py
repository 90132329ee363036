import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
signals = torch.randn(300, 6)
labels = (signals[:, 0] > 0).long()


class Recordings(Dataset):
    def __init__(self):
        self.buffer = torch.zeros(6)

    def __len__(self):
        return 300

    def __getitem__(self, index):
        return self.buffer, labels[index]


loader = DataLoader(Recordings(), batch_size=30, shuffle=True)  # expect: data/constant-input
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# allow: curve/plateau, loss/constant
