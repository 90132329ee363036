# allow: mode/graph-in-validation
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]


class Task:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.log = {"valid": []}

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.model(x), y)

    def validate(self):
        self.model.eval()
        total = 0.0
        for rows in torch.arange(144).split(48):
            total = total + self.loss(x_valid[rows], y_valid[rows])
        self.model.train()
        return total / 3

    def run(self):
        for _ in range(10):
            for rows in torch.randperm(256).split(32):
                self.optimizer.zero_grad()
                self.loss(x_train[rows], y_train[rows]).backward()
                self.optimizer.step()
            valid = self.validate()
            self.log["valid"].append(valid)  # expect: memory/graph-kept


Task().run()
