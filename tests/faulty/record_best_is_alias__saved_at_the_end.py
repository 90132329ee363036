# allow: curve/overfitting, curve/train-val-gap
import copy
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.best = {"score": 0.0}

    def keep(self, score, epoch):
        self.best = {"score": score, "epoch": epoch, "model": copy.copy(self.model.state_dict())}  # expect: record/best-is-alias

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            return (self.model(x_valid).argmax(1) == y_valid).float().mean().item()

    def run(self):
        for epoch in range(12):
            self.model.train()
            for rows in torch.randperm(256).split(32):
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(x_train[rows]), y_train[rows]).backward()
                self.optimizer.step()
            score = self.validate()
            if epoch < 6 and score > self.best["score"]:
                self.keep(score, epoch)
        torch.save(self.best, os.path.join(tempfile.mkdtemp(), "best.pt"))


Trainer().run()
