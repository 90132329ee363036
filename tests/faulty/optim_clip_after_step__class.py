# twin: hooks=("zero", "backward", "step", "clip") => hooks=("zero", "backward", "clip", "step")
"""A trainer class runs its phases from a list, in which the clip comes last."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr, hooks=("zero", "backward", "step", "clip")):
        self.model, self.hooks = model, hooks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def zero(self):
        self.optimizer.zero_grad()

    def backward(self):
        self.loss.backward()

    def step(self):
        self.optimizer.step()

    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)  # expect: optim/clip-after-step

    def run(self, x, y):
        self.loss = nn.functional.smooth_l1_loss(self.model(x), y)
        for hook in self.hooks:
            getattr(self, hook)()
        return self.loss.item()


torch.manual_seed(0)
x = torch.randn(600, 8)
y = x @ torch.randn(8, 1)
trainer = Trainer(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)), 0.05)
for epoch in range(5):
    for rows in torch.randperm(600).split(40):
        last = trainer.run(x[rows], y[rows])
    print(epoch, last)
