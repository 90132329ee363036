# allow: curve/plateau, curve/oscillating, curve/spike, init/dead-units, optim/lr-too-high, numeric/gradient-explosion, loss/initial-loss-off, init/saturated
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
labels = torch.randint(0, 4, (400,))
pixels = (torch.rand(400, 1, 10, 10) * 150).to(torch.uint8)
for i, label in enumerate(labels):
    pixels[i, 0, :, 2 * label:2 * label + 3] += 90
loader = DataLoader(TensorDataset(pixels, labels), batch_size=25, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.head = nn.Linear(8 * 64, 4)

    def forward(self, image):
        return self.head(torch.tanh(self.conv(image.float())).flatten(1) * 3)  # expect: data/not-normalised


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    for image, label in loader:
        loss = nn.functional.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
