import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(192, 6, 4)
y = (x[:, 0].sum(1) > 0).long()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 2)

    def forward(self, steps):
        _, last = self.gru(steps)
        return self.head(last.transpose(0, 1).reshape(len(steps), 16))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for steps, label in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(steps), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
