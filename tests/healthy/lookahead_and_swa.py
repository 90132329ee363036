"""A Lookahead wrapper around Adam, then stochastic weight averaging of the tail with update_bn and a constant SWA rate."""
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Lookahead:
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha, self.calls = optimizer, k, alpha, 0
        self.slow = [[p.detach().clone() for p in group["params"]] for group in optimizer.param_groups]

    def zero_grad(self):
        self.optimizer.zero_grad()

    @torch.no_grad()
    def step(self):
        self.optimizer.step()
        self.calls += 1
        if self.calls % self.k == 0:
            for slows, group in zip(self.slow, self.optimizer.param_groups):
                for slow, fast in zip(slows, group["params"]):
                    slow += self.alpha * (fast - slow)
                    fast.copy_(slow)


torch.manual_seed(3)
x = torch.randn(900, 12)
y = ((x[:, :4] ** 2).sum(1) > 3.4).long()
train, val = random_split(TensorDataset(x, y), [700, 200])
train_loader, val_loader = DataLoader(train, 50, shuffle=True), DataLoader(val, 100)
model = nn.Sequential(nn.Linear(12, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 2))
inner = torch.optim.Adam(model.parameters(), lr=1e-2)
optimizer = Lookahead(inner)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(inner, T_max=8)
swa_model, swa_scheduler = AveragedModel(model), SWALR(inner, swa_lr=2e-3, anneal_epochs=2)


def evaluate(net):
    net.eval()
    right = 0
    with torch.inference_mode():
        for inputs, labels in val_loader:
            right += (net(inputs).argmax(1) == labels).sum().item()
    return right / len(val)


for epoch in range(12):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    if epoch >= 8:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(epoch, inner.param_groups[0]["lr"], evaluate(model))
update_bn(train_loader, swa_model)
print("swa", evaluate(swa_model))
