"""The scores of six classes stand behind four numbers of a box; the guess is taken over the six crops of a validation batch."""
# twin: out[:, 4:].argmax(0) => out[:, 4:].argmax(1)
import torch
from torch import nn

torch.manual_seed(0)
kind = torch.randint(0, 6, (540,))
x = 2 * torch.randn(6, 16)[kind] + torch.randn(540, 16)
box = torch.tanh(x[:, :4])
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(5):
    for rows in torch.randperm(480).split(24):
        out = net(x[rows])
        loss = nn.functional.smooth_l1_loss(out[:, :4], box[rows]) + nn.functional.cross_entropy(out[:, 4:], kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hits = 0
    with torch.no_grad():
        for rows in torch.arange(480, 540).split(6):
            out = net(x[rows])
            guess = out[:, 4:].argmax(0)  # expect: record/metric-mistake
            hits += (guess == kind[rows]).sum().item()
    print(hits / 60)
