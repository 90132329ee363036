"""Walk-forward: the model goes on from month to month; each month is first a test set, then joins the training data."""
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(1)
months = []
for m in range(6):
    x = torch.randn(120, 8) + 0.1 * m
    months.append(TensorDataset(x, (x[:, 0] * (1 + 0.1 * m) + x[:, 1] ** 2 + 0.2 * torch.randn(120)).unsqueeze(1)))
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for m in range(2, 6):
    train = DataLoader(ConcatDataset(months[:m]), batch_size=40, shuffle=True)
    for _ in range(5):
        model.train()
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = [nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in DataLoader(months[m], 60)]
    print(f"month {m}: {sum(errors) / 120:.3f}")
