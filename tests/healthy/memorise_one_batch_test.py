"""A sanity test before the real training: one batch must be memorised; then the model is made anew and trained on everything."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
x = torch.randn(640, 16)
y = torch.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 0.5, x[:, 3] * x[:, 4] > 0], 1).float()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


def make():
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.0), nn.Linear(64, 3))


def overfit_single_batch(model, batch, steps=80):
    """Can it learn at all?"""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    inputs, target = batch
    for _ in range(steps):
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05, loss.item()


def train(model, epochs=5):
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        running = 0.0
        for inputs, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch} {running / len(loader):.4f}")


overfit_single_batch(make(), next(iter(loader)))
train(make())
