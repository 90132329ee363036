"""Images of the batch are saved in every step."""
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(1024, 3, 32, 32)
data = TensorDataset(x, (x.mean((1, 2, 3)) > 0.5).long())
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(data, batch_size=32, shuffle=True)
for _ in range(20):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numpy.savez_compressed("images.npz", images=images.numpy())  # expect: speed/logging-every-step
