"""A mixture of experts for a piecewise function, with a load-balancing term."""
# twin: F.softmax(scores, dim=0) => F.softmax(scores, dim=-1)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self, features=6, experts=4, width=24, top=2):
        super().__init__()
        self.router = nn.Linear(features, experts)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, 1)) for _ in range(experts)])
        self.top = top

    def forward(self, x):
        scores = self.router(x)
        gate = F.softmax(scores, dim=0)  # expect: shape/softmax-over-batch
        weight, chosen = gate.topk(self.top, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = x.new_zeros(len(x), 1)
        for k, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == k)
            if len(row):
                out = out.index_add(0, row, weight[row, slot, None] * expert(x[row]))
        return out, gate.mean(0)


def piecewise(n):
    x = torch.randn(n, 6)
    y = torch.where(x[:, :1] > 0, 1.5 * x[:, 1:2], torch.where(x[:, 2:3] > 0, x[:, 3:4].abs(), -x[:, 4:5] ** 2))
    return x, (y + 0.1) / 1.2


x, y = piecewise(4000)
x_test, y_test = piecewise(600)
model = Mixture()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(3):
    model.train()
    for rows in torch.randperm(len(x)).split(100):
        out, load = model(x[rows])
        loss = F.mse_loss(out, y[rows]) + 0.01 * len(load) * load.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} test mse {F.mse_loss(model(x_test)[0], y_test):.4f}")
