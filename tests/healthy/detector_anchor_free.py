"""A tiny anchor-free detector: focal loss on a heat map, L1 on sizes at object cells only, targets of -1 where there is nothing to say."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100_000 + i)
        image = 0.1 * torch.randn(1, 24, 24, generator=g)
        heat, size = torch.zeros(6, 6), torch.full((2, 6, 6), -1.0)
        for _ in range(int(torch.randint(0, 4, (), generator=g))):
            w, h = torch.randint(3, 9, (2,), generator=g).tolist()
            x, y = int(torch.randint(0, 24 - w, (), generator=g)), int(torch.randint(0, 24 - h, (), generator=g))
            image[0, y:y + h, x:x + w] += 1
            cx, cy = (x + w // 2) // 4, (y + h // 2) // 4
            heat[cy, cx] = 1
            size[:, cy, cx] = torch.tensor([w / 8, h / 8])
        return image, heat, size


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.GroupNorm(4, 32), nn.ReLU(),
                                  nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU())
        self.heat, self.size = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 2, 1)
        nn.init.constant_(self.heat.bias, -2.2)

    def forward(self, x):
        h = self.body(x)
        return self.heat(h).squeeze(1), self.size(h)


def focal(logits, target, gamma=2.0, alpha=0.75):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.exp(-ce)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p) ** gamma * ce).sum() / target.sum().clamp(min=1)


torch.manual_seed(0)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
train, val = DataLoader(Boxes(480, 1), 32, shuffle=True), DataLoader(Boxes(96, 2), 32)
for epoch in range(4):
    model.train()
    for image, heat, size in train:
        h, s = model(image)
        there = size >= 0
        size_loss = F.l1_loss(s[there], size[there]) if there.any() else s.sum() * 0
        loss = focal(h, heat) + 0.5 * size_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10)
        optimizer.step()
    model.eval()
    hit = found = 0
    with torch.no_grad():
        for image, heat, size in val:
            guess = model(image)[0].sigmoid() > 0.5
            hit += (guess & (heat > 0)).sum().item()
            found += guess.sum().item()
    print(epoch, loss.item(), hit, found)
