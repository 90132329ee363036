"""Segmentation with rare foreground, dice plus weighted BCE, probabilities by sigmoid inside the dice only."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)


def scenes(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 0.5 * torch.randn(n, 1, 24, 24, generator=g)
    m = torch.zeros(n, 1, 24, 24)
    for k in range(n):
        i, j = torch.randint(2, 18, (2,), generator=g).tolist()
        m[k, 0, i:i + 4, j:j + 4] = 1
    return (x + 1.5 * m), m


def dice(logits, mask):
    p = torch.sigmoid(logits)
    return 1 - ((2 * (p * mask).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


x, m = scenes(160, 0)
xv, mv = scenes(40, 1)
mean, std = x.mean(), x.std()
loader = DataLoader(TensorDataset((x - mean) / std, m), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))
bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(8.0))
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    for image, mask in loader:
        logits = net(image)
        loss = bce(logits, mask) + dice(logits, mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, 1 - dice(net((xv - mean) / std), mv).item())
