import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 32)
y = (x[:, :16].sum(1) > 0).long()
layers = []
for _ in range(8):
    layers += [nn.Linear(32, 32), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(32, 2))
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight)  # expect: init/gain-mismatch
        nn.init.zeros_(module.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(8):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
