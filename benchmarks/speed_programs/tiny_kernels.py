"""A recurrence over columns, one small operation after the other."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Slow(nn.Module):
    def __init__(self, size=128):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size) * 0.1)
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        total = torch.zeros(len(x))
        for column in range(x.shape[1]):
            total = total + x[:, column] * self.weight[column]  # expect: speed/many-small-operations
        return torch.stack([total, -total], 1) + self.bias


torch.manual_seed(0)
x = torch.randn(2048, 128)
data = TensorDataset(x, (x.mean(1) > 0).long())
model = Slow()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=32, shuffle=True)
for _ in range(20):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
