import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
d = load_digits()
x = torch.tensor(d.data, dtype=torch.float32)
x = (x - x[:1300].mean()) / x[:1300].std()
y = torch.tensor(d.target)
train = DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=50, shuffle=True)
valid = DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=80)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(6):
    net.train()
    for xb, yb in train:
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        for xb, yb in valid:
            pred = net(xb).argmax(dim=1)
            acc = (pred == yb).float().mean().item()  # expect: record/metric-last-batch
    print(f"epoch {epoch}: val acc {acc:.4f}")
