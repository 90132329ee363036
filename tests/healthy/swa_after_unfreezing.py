"""Transfer: head first, then blocks unfrozen one by one with their own rates, then weights averaged and statistics re-estimated."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.low, self.high = block(1, 16), block(16, 32)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, classes))

    def forward(self, x):
        return self.head(self.high(self.low(x)))


def epoch(model, loader, optimizer):
    model.train()
    for name in ("low", "high"):
        part = getattr(model, name)
        if not next(part.parameters()).requires_grad:
            part.eval()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in loader) / len(loader.dataset)


# pretraining: even against odd digits
source = DataLoader(TensorDataset(x[:700], y[:700] % 2), 32, shuffle=True)
base = Net(2)
optimizer = torch.optim.AdamW(base.parameters(), lr=2e-3)
for _ in range(4):
    epoch(base, source, optimizer)
# transfer: which digit
train, test = DataLoader(TensorDataset(x[700:1400], y[700:1400]), 32, shuffle=True), DataLoader(TensorDataset(x[1400:], y[1400:]), 100)
model = Net(10)
weights = {k: v for k, v in base.state_dict().items() if not k.startswith("head")}
print(model.load_state_dict(weights, strict=False).missing_keys)
for part in (model.low, model.high):
    part.requires_grad_(False)
optimizer = torch.optim.AdamW(model.head.parameters(), lr=4e-3)
for i in range(12):
    if i == 3:
        model.high.requires_grad_(True)
        optimizer.add_param_group({"params": model.high.parameters(), "lr": 2e-3})
    if i == 6:
        model.low.requires_grad_(True)
        optimizer.add_param_group({"params": model.low.parameters(), "lr": 1e-3})
    loss = epoch(model, train, optimizer)
    print(f"{i}: loss {loss:.3f} accuracy {accuracy(model, test):.3f}")
average = AveragedModel(model)
slow = SWALR(optimizer, swa_lr=1e-3, anneal_epochs=2)
for i in range(5):
    epoch(model, train, optimizer)
    average.update_parameters(model)
    slow.step()
update_bn(train, average)
print("average", accuracy(average, test))
