"""Pretrain on rotated digits, then fine-tune everything on upright digits."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(0)
d = load_digits()
img = torch.tensor(d.images, dtype=torch.float32).sub(4.9).div(6.0)
y = torch.tensor(d.target)
order = torch.randperm(len(y))
img, y = img[order], y[order]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.body(x))


def fit(net, x, y, epochs, lr):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


net = Net()
print("pretrain", fit(net, img[:700].rot90(1, (1, 2)), y[:700], 4, 3e-3))
for p in net.body.parameters():
    p.requires_grad = False
net.head = nn.Linear(16, 10)
print("warm up head", fit(net, img[700:1400], y[700:1400], 2, 3e-3))
for p in net.body.parameters():
    p.requires_grad = True
print("fine-tune", fit(net, img[700:1400], y[700:1400], 5, 1e-3))
with torch.no_grad():
    print((net(img[1400:]).argmax(1) == y[1400:]).float().mean().item())
