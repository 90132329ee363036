import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(1, 4), nn.Linear(1, 4), nn.Linear(1, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2)  # expect: memory/out-of-memory
        return self.head(scores.softmax(-1) @ self.value(x)).mean(1)


torch.manual_seed(0)
lengths = [64] * 6 + [8_000_000]
model = Attention()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for length in lengths:
    series = torch.rand(1, 1, 1) + 0.1 * torch.randn(1, length, 1)
    loss = nn.functional.mse_loss(model(series), series.mean(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
