"""A helper regularises by F.dropout, whose default is to drop."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 10)
y = (x[:, 0] > 0).long()


def dense(layer, h, rate=0.3):
    return F.dropout(F.relu(layer(h)), rate)  # expect: mode/dropout-always-on


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(10, 32), nn.Linear(32, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.out(dense(self.b, dense(self.a, x)))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(5):
    net.train()
    for rows in torch.randperm(240).split(40):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, (net(x[240:]).argmax(1) == y[240:]).float().mean().item())
