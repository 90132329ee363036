"""A reservoir: recurrent weights fixed in buffers, only the readout learns; states computed once under no_grad, then full-batch training with L-BFGS and with Adam."""
import torch
from torch import nn

torch.manual_seed(16)


class Reservoir(nn.Module):
    def __init__(self, size=80, radius=0.9):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < 0.1)
        self.register_buffer("w", w * radius / torch.linalg.eigvals(w).abs().max())
        self.register_buffer("win", torch.rand(size, 1) - 0.5)

    @torch.no_grad()
    def forward(self, series):
        h, out = torch.zeros(self.w.size(0)), []
        for value in series:
            h = torch.tanh(self.w @ h + self.win @ value.view(1))
            out.append(h)
        return torch.stack(out)


t = torch.arange(601) * 0.2
series = torch.sin(t) + 0.5 * torch.sin(2.2 * t)
states = Reservoir()(series[:-1])[100:]
target = series[101:].unsqueeze(1)
readout = nn.Linear(80, 1)
optimizer = torch.optim.Adam(readout.parameters(), lr=1e-2)
for step in range(100):
    loss = nn.functional.mse_loss(readout(states[:350]), target[:350])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
polish = torch.optim.LBFGS(readout.parameters(), lr=0.5, max_iter=10)


def closure():
    polish.zero_grad()
    out = nn.functional.mse_loss(readout(states[:350]), target[:350]) + 1e-4 * readout.weight.pow(2).sum()
    out.backward()
    return out


for _ in range(3):
    polish.step(closure)
with torch.no_grad():
    print(nn.functional.mse_loss(readout(states[350:]), target[350:]).item())
