import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
labels = torch.randint(0, 2, (300,))
pixels = (torch.rand(300, 8, 8) * 200 + 55 * labels[:, None, None] * (torch.arange(8) < 4)).to(torch.uint8)


class Images(Dataset):
    def __len__(self):
        return 300

    def __getitem__(self, index):
        image = pixels[index].float() / 255
        return (image.flatten() - 0.4) / 0.25, labels[index]


loader = DataLoader(Images(), batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
