"""model.zero_grad() does not know the two log-variances that the optimizer trains besides the model."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 6)
y1, y2 = x[:, :1] + x[:, 1:2], (x[:, 2:3] > 0).float()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
log_var = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.Adam([*model.parameters(), log_var], lr=5e-3)
for _ in range(6):
    for rows in torch.randperm(320).split(32):
        out = model(x[rows])
        first = nn.functional.mse_loss(out[:, :1], y1[rows])
        second = nn.functional.binary_cross_entropy_with_logits(out[:, 1:], y2[rows])
        loss = (torch.exp(-log_var) * torch.stack([first, second]) + log_var).sum()
        model.zero_grad()
        loss.backward()
        optimizer.step()  # expect: optim/grad-not-reset-for-some
