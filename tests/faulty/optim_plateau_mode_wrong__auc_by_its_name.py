# allow: optim/lr-zero, curve/plateau, optim/lr-too-low
"""The rate is gone before the loss could fall, and an AUC is no multiple of one n-th: what is left is its course and its name."""
# twin: factor=0.1) => factor=0.1, mode="max")
import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(900, 8)
y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] + 0.5 * torch.randn(900) > 0).float()


def auc_of(scores, truth):
    above = scores[truth == 1].unsqueeze(1) > scores[truth == 0]
    return above.double().mean().item()


net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.1)  # expect: optim/plateau-mode-wrong
for _ in range(10):
    for rows in torch.randperm(600).split(50):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(x[rows])[:, 0], y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        val_auc = auc_of(net(x[600:])[:, 0], y[600:])
    plateau.step(val_auc)
