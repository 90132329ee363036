# needs: accelerate
"""Accelerate: a second module (a learned loss head) is prepared and trained through, but the optimizer was given the first only."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(480, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
encoder, head = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 2)
optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)  # expect: optim/params-missing
encoder, head, optimizer, loader = accelerator.prepare(encoder, head, optimizer, DataLoader(TensorDataset(x, y), 16, shuffle=True))
for epoch in range(5):
    for inputs, labels in loader:
        with accelerator.accumulate(encoder):
            loss = nn.functional.cross_entropy(head(encoder(inputs)), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
