"""A value that is swapped without its gradient, a detached hidden state, an auxiliary head that is only logged."""
import torch
import torch.nn.functional as F
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 16)
        self.out = nn.Linear(16, 1)
        self.aux = nn.Linear(16, 3)

    def forward(self, steps, hidden):
        outputs = []
        for step in steps.unbind(1):
            hidden = self.cell(step, hidden)
            outputs.append(self.out(hidden))
        self.guess = self.aux(hidden).argmax(1).float().mean().item()
        return torch.stack(outputs, 1).squeeze(-1), hidden.detach()


torch.manual_seed(0)
walk = torch.randn(16, 160, 4)
goal = walk[..., 0].roll(1, 1).tanh()
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(3):
    hidden = torch.zeros(16, 16)
    for part in range(0, 160, 16):
        out, hidden = model(walk[:, part:part + 16], hidden)
        smooth = F.smooth_l1_loss(out, goal[:, part:part + 16])
        shown = F.mse_loss(out, goal[:, part:part + 16])
        loss = smooth + (shown - smooth).detach()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
