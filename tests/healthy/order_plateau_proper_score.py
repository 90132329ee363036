"""Calibrated classifier; plateau schedule on a proper score (lower is better) that rises as it overfits."""
import torch, torch.nn as nn
torch.manual_seed(0)
x = torch.randn(500, 30); y = ((x[:, 0] + 1.2 * torch.randn(500)) > 0).float()
tr, va = torch.arange(120), torch.arange(120, 500)
net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 1)); opt = torch.optim.Adam(net.parameters(), 5e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.5, patience=3)
for e in range(40):
    net.train()
    for b in tr[torch.randperm(120)].split(20):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[b]).squeeze(1), y[b]); opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad(): score = (net(x[va]).squeeze(1).sigmoid() - y[va]).square().mean().item()
    plateau.step(score)
    if e % 8 == 7: print(e + 1, round(loss.item(), 3), round(score, 4), opt.param_groups[0]["lr"])
