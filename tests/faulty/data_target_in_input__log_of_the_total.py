"""Claims: one column is the settled amount with costs, on another scale than the target."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(n, seed):
    rng = np.random.default_rng(seed)
    age, value, risk = rng.uniform(18, 80, n), rng.lognormal(9.5, 0.5, n), rng.random(n)
    amount = np.exp(0.5 * np.log(value) + 0.8 * risk - 0.01 * age + rng.normal(0, 0.6, n))
    return np.stack([age, np.log(value), risk, np.sqrt(1.15 * amount + 40)], 1), np.log1p(amount)


torch.manual_seed(0)
x, y = table(1200, 0)
x, y = ((part - part.mean(0)) / part.std(0) for part in (x, y))
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
loader = DataLoader(data, 40, shuffle=True)  # expect: data/target-in-input
model = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    for rows, target in loader:
        loss = nn.functional.huber_loss(model(rows)[:, 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# twin: np.sqrt(1.15 * amount + 40) => rng.normal(0, 1, n)
