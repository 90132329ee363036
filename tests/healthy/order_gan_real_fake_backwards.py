"""dcgan style: two backwards (real, fake) of mean losses for one step of D, through one function and one line."""
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_d = torch.optim.SGD(D.parameters(), lr=0.05)
opt_g = torch.optim.SGD(G.parameters(), lr=0.02)
criterion = nn.BCEWithLogitsLoss()


def push(x, label):
    loss = criterion(D(x).view(-1), torch.full((len(x),), label))
    loss.backward()
    return loss.item()


for _ in range(60):
    D.zero_grad()
    push(torch.randn(64, 2) * 0.3 + 1.0, 1.0)
    fake = G(torch.randn(64, 4))
    push(fake.detach(), 0.0)
    opt_d.step()
    G.zero_grad()
    push(fake, 1.0)
    opt_g.step()
