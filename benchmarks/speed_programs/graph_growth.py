"""A hidden state is carried from batch to batch with its graph."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(4096, 8), torch.randn(4096, 1))
cell, head = nn.GRUCell(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
loader = DataLoader(data, batch_size=8, drop_last=True)
hidden = torch.zeros(8, 16)
for x, y in loader:
    hidden = cell(x, hidden)  # expect: memory/graph-kept
    loss = nn.functional.mse_loss(head(hidden), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
