# allow: curve/plateau
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
x = torch.randn(256, 6, 8)
y = (x[:, :, 0].amax(1) > 1.3).float()


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(8, 1), nn.Linear(8, 1)
        self.normalise = nn.Softmax()  # expect: shape/softmax-over-batch

    def forward(self, h):
        return self.head((self.normalise(self.score(h)) * h).sum(1)).squeeze(1)


model = Pooled()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
for _ in range(5):
    for h, label in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(h), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
