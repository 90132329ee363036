"""Counts with exposure: Poisson loss on log rates plus a log offset, embeddings for places, standardised numeric columns, deviance printed."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(8)
torch.manual_seed(8)
n = 1200
numeric = np.stack([rng.integers(18, 80, n), rng.gamma(4, 20, n)], 1).astype(np.float32)
region, exposure = rng.integers(0, 5, n), rng.uniform(0.1, 1, n).astype(np.float32)
rate = np.exp(-1 + 0.02 * (40 - numeric[:, 0]) / 10 + 0.004 * numeric[:, 1] + np.array([0, .3, -.2, .5, 0])[region])
claims = rng.poisson(rate * exposure).astype(np.float32)
train, test = np.split(rng.permutation(n), [960])
centre, scale = numeric[train].mean(0), numeric[train].std(0)


class Policies(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        i = self.rows[i]
        return {"numeric": (numeric[i] - centre) / scale, "region": region[i], "offset": np.log(exposure[i])}, claims[i]


class Frequency(nn.Module):
    def __init__(self):
        super().__init__()
        self.region = nn.Embedding(5, 3)
        self.net = nn.Sequential(nn.Linear(5, 24), nn.ELU(), nn.Linear(24, 1))

    def forward(self, numeric, region, offset):
        return self.net(torch.cat([numeric, self.region(region)], 1)).squeeze(1) + offset


model = Frequency()
loss_fn = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
train_loader, test_loader = DataLoader(Policies(train), 64, shuffle=True), DataLoader(Policies(test), 240)
for epoch in range(6):
    model.train()
    for features, target in train_loader:
        loss = loss_fn(model(**features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for features, target in test_loader:
            mean = model(**features).exp()
            deviance = 2 * (torch.xlogy(target, target / mean) - (target - mean)).mean()
    print(epoch, loss.item(), deviance.item())
