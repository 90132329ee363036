# needs: torchmetrics
"""A metric is computed in train mode: nobody calls eval(), and the dropout is strong."""
import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
train, val = DataLoader(TensorDataset(x[:500], y[:500]), 32, shuffle=True), DataLoader(TensorDataset(x[500:], y[500:]), 64)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    for inputs, labels in train:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for inputs, labels in val:
            accuracy.update(model(inputs), labels)  # expect: mode/eval-missing
    print(epoch, accuracy.compute().item())
    accuracy.reset()
