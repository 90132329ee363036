# allow: curve/plateau, optim/lr-too-low
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
x = torch.randn(3000, 10)
fraud = (x[:, 0] - x[:, 1] + 2 * torch.randn(3000) > 4.6).float()
loader = DataLoader(TensorDataset(x, fraud), batch_size=64, shuffle=True)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    for xb, yb in loader:
        loss = criterion(net(xb).squeeze(1), yb)  # expect: data/class-imbalance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
