# allow: data/class-imbalance, curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(384, 8)
y = ((x[:, 0] + x[:, 1]) > 1).float()


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(8, 32), nn.Linear(32, 1)

    def forward(self, inputs):
        return torch.sigmoid(self.out(torch.relu(self.body(inputs)))).squeeze(1)  # expect: loss/double-sigmoid


def focal_loss(logits, target, gamma=2.0, eps=1e-7):
    p = torch.sigmoid(logits)
    right = torch.where(target == 1, p, 1 - p)
    return -((1 - right) ** gamma * torch.log(right + eps)).mean()


model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(384).split(32):
        loss = focal_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
