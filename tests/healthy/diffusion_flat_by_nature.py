"""A denoiser's loss is flat nearly from the start: the noise that it must guess is new in each step."""
import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(512, 2) * 0.5 + torch.tensor([[1.0, -1.0]]) * torch.randint(0, 2, (512, 1)) * 2 - 1
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for _ in range(300):
    x = data[torch.randint(0, 512, (64,))]
    t = torch.rand(64, 1)
    noise = torch.randn_like(x)
    noisy = (1 - t).sqrt() * x + t.sqrt() * noise
    loss = nn.functional.mse_loss(net(torch.cat([noisy, t], 1)), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
