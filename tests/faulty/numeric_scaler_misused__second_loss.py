"""Half-precision training of a gated encoder with a penalty on open gates (GradScaler, runs on CPU and GPU)."""
# twin:         penalty.backward() =>         scaler.scale(penalty).backward()
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Gated(nn.Module):
    def __init__(self, features=40, width=64):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(features))
        self.net = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, 3))

    def open(self):
        return torch.sigmoid(self.gate)

    def forward(self, x):
        return self.net(x * self.open())


def table(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 40, generator=g)
    y = torch.stack([x[:, 0] + x[:, 1], x[:, 2] - x[:, 3], 0.5 * x[:, 4] + x[:, 5]], 1).argmax(1)
    return x, y


torch.manual_seed(0)
x, y = table(3000, 0)
x_test, y_test = table(800, 1)
model = Gated().to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scaler = torch.amp.GradScaler(DEVICE, init_scale=4096.0)
for epoch in range(3):
    model.train()
    for rows in torch.randperm(len(x)).split(100):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.float16):
            logits = model(x[rows].to(DEVICE))
            loss = nn.functional.cross_entropy(logits.float(), y[rows].to(DEVICE))
        penalty = 0.05 * model.open().mean() * 40
        scaler.scale(loss).backward()
        penalty.backward()  # expect: numeric/scaler-misused
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test.to(DEVICE)).argmax(1).cpu() == y_test).float().mean()
    print(f"epoch {epoch} accuracy {accuracy:.3f} open gates {model.open().sum().item():.1f}")
