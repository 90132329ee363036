import torch
import torch.nn as nn
import torch.nn.functional as F


class Pool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.score = nn.Linear(d, 1)

    def forward(self, h):                      # h: [B, T, d]
        w = F.softmax(self.score(h).squeeze(-1), dim=0)  # expect: shape/softmax-over-batch
        return (w.unsqueeze(-1) * h).sum(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 24, batch_first=True)
        self.pool = Pool(24)
        self.fc = nn.Linear(24, 2)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.fc(self.pool(h))


torch.manual_seed(0)
x = torch.randn(600, 15, 4)
y = (x[:, :, 0].max(1).values > 1.7).long()
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    net.train()
    for i in torch.randperm(500).split(25):
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, (net(x[500:]).argmax(1) == y[500:]).float().mean().item())
