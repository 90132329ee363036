import torch
from torch import nn

torch.manual_seed(9)
codes = nn.functional.one_hot(torch.randint(0, 6, (300, 4)), 6).float().flatten(1)
model = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 24))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(5):
    for rows in torch.randperm(260).split(26):
        clean = codes[rows]
        noisy = clean * (torch.rand_like(clean) > 0.15)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held_out = codes[260:]
        print(nn.functional.mse_loss(model(held_out * (torch.rand_like(held_out) > 0.15)), held_out).item())
