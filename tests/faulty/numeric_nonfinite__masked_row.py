# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
N, T, D = 256, 7, 12
x = torch.randn(N, T, D)
lengths = torch.randint(2, T + 1, (N,))
lengths[137] = 0
mask = torch.arange(T)[None] < lengths[:, None]
y = ((x * mask.unsqueeze(-1)).sum((1, 2)) > 0).long()


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(D, 24)
        self.score = nn.Linear(24, 1)
        self.out = nn.Linear(24, 2)

    def forward(self, tokens, keep):
        h = torch.tanh(self.embed(tokens))
        scores = self.score(h).squeeze(-1).masked_fill(~keep, float("-inf"))
        weights = scores.softmax(dim=1)  # expect: numeric/nonfinite
        return self.out((weights.unsqueeze(-1) * h).sum(1))


net = Pooling()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for _ in range(8):
    order = torch.randperm(N)
    for i in range(0, N, 32):
        rows = order[i:i + 32]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows], mask[rows]), y[rows])
        loss.backward()
        optimizer.step()
