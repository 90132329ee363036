"""bf16 autocast needs no GradScaler; clipping after backward; cosine schedule to zero over the whole run."""
import torch
from torch import nn

torch.manual_seed(17)
x = torch.randn(600, 32)
y = (x[:, :8].sum(1) > 0).long() * 2 + (x[:, 8:16].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10 * 10)
for epoch in range(10):
    for rows in torch.randperm(500).split(50):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
with torch.no_grad():
    print(loss.item(), (model(x[500:]).argmax(1) == y[500:]).float().mean().item())
