"""An LSTM whose gradients spike now and then and are clipped; the loss falls."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 20, 3)
y = x[:, :, 0].cumsum(1)[:, -1:] / 4
x[100, :5] *= 25


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(320).split(32):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
