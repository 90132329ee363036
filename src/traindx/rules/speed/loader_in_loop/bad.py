import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
data = TensorDataset(x, x[:, :1] - x[:, 1:2])
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(40):
    xb, yb = next(iter(DataLoader(data, batch_size=32, shuffle=True)))  # expect: speed/loader-in-loop
    loss = nn.functional.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
