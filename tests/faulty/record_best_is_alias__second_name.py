# allow: curve/overfitting, curve/train-val-gap
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
x_train, y_train, x_valid, y_valid = x[:256], y[:256], x[256:], y[256:]


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def fit(epochs):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    best_model, best = None, 0.0
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = accuracy(model, x_valid, y_valid)
        if score > best:
            best = score
            best_model = model  # expect: record/best-is-alias
    return best_model


print(accuracy(fit(12), x_valid, y_valid))
