import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :1] - 0.5 * x[:, 1:2] * x[:, 2:3]
importance = 0.5 + torch.rand(256)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss(self, batch):
        inputs, target, weight = batch
        each = F.smooth_l1_loss(self.model(inputs), target, reduction="none")
        return torch.sum(each * weight) / weight.sum() / len(weight)  # expect: shape/silent-broadcast

    def fit(self, loader):
        for _ in range(6):
            for batch in loader:
                self.optimizer.zero_grad()
                self.loss(batch).backward()
                self.optimizer.step()


Trainer(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))).fit(
    DataLoader(TensorDataset(x, y, importance), batch_size=32, shuffle=True))
