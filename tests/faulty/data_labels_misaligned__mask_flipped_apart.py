# allow: curve/train-val-gap, curve/val-better-than-train
# twin: image, mask = self.flip(image), self.flip(mask) => image, mask = self.flip(np.stack([image, mask]))
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cells(Dataset):
    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        down, across = np.mgrid[:24, :24]
        self.rows, self.augment = [], augment
        for _ in range(count):
            y, x, a, b = rng.uniform((4, 4, 2, 2), (20, 20, 5, 5))
            mask = ((down - y) / a) ** 2 + ((across - x) / b) ** 2 < 1
            self.rows.append(((1.5 * mask + rng.normal(0, 0.5, mask.shape)).astype("float32"), mask.astype("float32")))

    def __len__(self):
        return len(self.rows)

    def flip(self, picture):
        return picture[..., ::-1].copy() if torch.rand(()) < 0.5 else picture

    def __getitem__(self, i):
        image, mask = self.rows[i]
        if self.augment:
            image, mask = self.flip(image), self.flip(mask)
        return torch.from_numpy(image)[None], torch.from_numpy(mask)[None]  # expect: data/labels-misaligned


torch.manual_seed(0)
train, held_out = DataLoader(Cells(160, 0, True), 16, shuffle=True), DataLoader(Cells(48, 1, False), 48)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for image, mask in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), *(nn.functional.binary_cross_entropy_with_logits(model(image), mask).item() for image, mask in held_out))
    model.train()
