"""A model class ends with a probability property used for the loss; BCEWithLogits in a loss dictionary."""
import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(600, 9)
y = ((x[:, 0] - x[:, 1]) > 0).float()


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(9, 32), nn.Linear(32, 32)])
        self.final = nn.Linear(32, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return {"prob": torch.sigmoid(self.final(x)).squeeze(-1)}


LOSSES = {"binary": nn.BCEWithLogitsLoss(), "regression": nn.MSELoss()}
net = Scorer()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(8):
    for rows in torch.randperm(500).split(50):
        out = net(x[rows])
        loss = LOSSES["binary"](out["prob"], y[rows])  # expect: loss/double-sigmoid
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
