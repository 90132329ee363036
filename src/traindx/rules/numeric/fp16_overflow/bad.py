import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 10, 16)
y = (x[:, :, 0].max(1).values > 1.5).long()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 64), nn.Linear(16, 64), nn.Linear(16, 16)
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 2)

    def forward(self, x):
        q, k = self.q(x) * 300, self.k(x) * 300
        scores = q @ k.transpose(1, 2)  # expect: numeric/fp16-overflow
        weights = (scores / 90000 / 8).softmax(-1)
        return self.out(self.norm(weights @ self.v(x)).mean(1))


net = Attention()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    for rows in torch.randperm(256).split(32):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
