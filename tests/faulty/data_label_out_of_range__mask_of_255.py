# allow: curve/diverging, curve/plateau, numeric/gradient-explosion, loss/wrong-direction, curve/oscillating
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
images = torch.randn(120, 1, 12, 12)
masks = (images.roll(1, -1) + images > 1.0).to(torch.uint8) * 255
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(4):
    for rows in torch.randperm(120).split(12):
        loss = F.binary_cross_entropy_with_logits(net(images[rows]), masks[rows].float())  # expect: data/label-out-of-range
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
