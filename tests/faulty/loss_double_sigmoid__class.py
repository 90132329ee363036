"""Multi-label net: sigmoid in the model, BCE-with-logits in the trainer class."""
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(10, 32), nn.Linear(32, 5)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return torch.sigmoid(self.layers[-1](x))


class Trainer:
    def __init__(self):
        self.model = Tagger()
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(x), y)  # expect: loss/double-sigmoid
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, :5] + x[:, 5:] > 0).float()
trainer = Trainer()
for _ in range(6):
    for rows in torch.randperm(512).split(64):
        trainer.step(x[rows], y[rows])
