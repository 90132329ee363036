import torch
from torch import nn

torch.manual_seed(0)
stream = torch.sin(torch.arange(0, 60, 0.1)).reshape(-1, 1, 1)
cell, head = nn.GRUCell(1, 16), nn.Linear(16, 1)
weights = [*cell.parameters(), *head.parameters()]
state = torch.zeros(1, 16)
for now, following in zip(stream[:80], stream[1:81]):
    state = cell(now, state)  # expect: memory/graph-kept
    loss = nn.functional.mse_loss(head(state), following)
    for weight in weights:
        weight.grad = None
    loss.backward(retain_graph=True)
    for weight in weights:
        weight.data -= 0.01 * weight.grad
