# twin: build_optimizer(model.backbone, 3e-3) => build_optimizer(model, 3e-3)
"""A helper splits parameters into two groups, but is handed the backbone only."""
import torch
from torch import nn


def build_optimizer(module, lr):
    decay = [p for p in module.parameters() if p.dim() > 1]
    rest = [p for p in module.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": rest, "weight_decay": 0.0}], lr=lr)  # expect: optim/params-missing


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.neck, self.head = nn.Linear(48, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(torch.relu(self.neck(self.backbone(x))))


torch.manual_seed(0)
x = torch.randn(640, 8)
y = x[:, :1] * x[:, 1:2]
model = Net()
optimizer = build_optimizer(model.backbone, 3e-3)
for epoch in range(6):
    for rows in torch.randperm(640).split(40):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
