import torch
from torch import nn

torch.manual_seed(6)
real = torch.randn(400, 2) * 0.3 + torch.tensor([1.0, -1.0])
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
for step in range(150):
    for batch, label in ((real[torch.randint(400, (32,))], 0.9), (generator(torch.randn(32, 4)).detach(), 0.0)):
        loss = bce(critic(batch), torch.full((32, 1), label))
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
    fooled = bce(critic(generator(torch.randn(32, 4))), torch.ones(32, 1))
    opt_g.zero_grad()
    fooled.backward()
    opt_g.step()
