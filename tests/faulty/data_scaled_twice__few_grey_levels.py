"""Byte images of only a few grey levels; two steps of a composed transform both divide by 255."""
# allow: curve/plateau
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def to_float(image):
    return image[None].float().div(255)


class Rescale:
    def __init__(self, top=255.0):
        self.top = top

    def __call__(self, x):
        return x / self.top


class Glyphs(Dataset):
    def __init__(self, images, labels, *steps):
        self.images, self.labels, self.steps = images, labels, steps

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = self.images[i]
        for step in self.steps:
            x = step(x)
        return x, self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 8, 3), nn.Linear(8 * 36, 4)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


torch.manual_seed(0)
labels = torch.randint(0, 4, (800,))
shapes = torch.rand(4, 8, 8)
levels = ((shapes[labels] + 0.25 * torch.randn(800, 8, 8)).clamp(0, 1) * 16).round()
images = (levels / 16 * 255).round().to(torch.uint8)
loader = DataLoader(Glyphs(images, labels, to_float, Rescale()), 40, shuffle=True)  # expect: data/scaled-twice
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# twin: to_float, Rescale()), 40 => to_float), 40
