import torch
from torch import nn

torch.manual_seed(0)
lengths = torch.randint(4, 12, (120,)).tolist()
lengths[70] = 60  # one long recording
sequences = [torch.randn(16, n, 2) for n in lengths]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.again, self.leave = nn.Linear(2, 24), nn.Linear(24, 24), nn.Linear(24, 1)
        nn.init.orthogonal_(self.again.weight, 1.8)

    def forward(self, x):
        h = x.new_zeros(len(x), 24)
        for t in range(x.shape[1]):
            h = torch.relu(self.enter(x[:, t]) + self.again(h))
        return self.leave(h)


net = Recurrent()
optimizer = torch.optim.SGD(net.parameters(), lr=3e-3)
for i in range(120):
    x = sequences[i]
    loss = nn.functional.mse_loss(net(x), x[:, -1:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # expect: numeric/gradient-explosion
