"""Denoising score matching with noise levels: the loss keeps a floor by nature; Langevin sampling afterwards in eval mode."""
import torch
from torch import nn

torch.manual_seed(6)
angle = torch.rand(2000) * 6.2832
data = torch.stack([angle.cos(), angle.sin()], 1) + 0.03 * torch.randn(2000, 2)
sigmas = torch.logspace(0, -1.5, 8)


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(len(sigmas), 16)
        self.net = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, level):
        return self.net(torch.cat([x, self.time(level)], 1)) / sigmas[level, None]


model = Score()
ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(300):
    clean = data[torch.randint(0, 2000, (128,))]
    level = torch.randint(0, len(sigmas), (128,))
    noise = torch.randn_like(clean)
    sigma = sigmas[level, None]
    score = model(clean + sigma * noise, level)
    loss = ((score * sigma + noise) ** 2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    if step % 100 == 0:
        print(step, loss.item())
ema.eval()
x = torch.randn(200, 2)
with torch.no_grad():
    for i, sigma in enumerate(sigmas):
        level = torch.full((200,), i)
        for _ in range(10):
            step = 0.05 * sigma ** 2
            x = x + step * ema(x, level) + (2 * step).sqrt() * torch.randn_like(x)
print("radius", x.norm(dim=1).mean().item())
