import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(400, 6)
y = (x[:, 0] * 3 + x[:, 1] > 0).long()


def penalty(logits):
    p = logits.softmax(dim=-1)
    return -(p * p.log()).sum(dim=-1).mean()  # expect: numeric/nonfinite


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.5, momentum=0.9)

    def step(self, inputs, labels):
        logits = self.net(inputs) * 40
        loss = nn.functional.cross_entropy(logits, labels) + 0.1 * penalty(logits)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer()
for _ in range(12):
    for rows in torch.randperm(400).split(40):
        trainer.step(x[rows], y[rows])
