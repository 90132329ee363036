# allow: curve/plateau, optim/lr-too-low, init/activation-collapse
import torch
from torch import nn

torch.manual_seed(16)
labels = torch.randint(0, 3, (300,))
pixels = torch.randint(0, 256, (300, 1, 9, 9))
pixels[:, :, 3:6] = (pixels[:, :, 3:6] // 4 + 60 * labels[:, None, None, None]).clamp(max=255)


def to_input(raw):
    scaled = raw.float() / 255
    return (scaled / 255 - 0.45) / 0.27


net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
for _ in range(4):
    for rows in torch.randperm(300).split(30):
        scores = net(to_input(pixels[rows]))  # expect: data/scaled-twice
        loss = nn.functional.cross_entropy(scores, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
