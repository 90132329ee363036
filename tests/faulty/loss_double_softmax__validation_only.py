# allow: curve/train-val-gap
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(384, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.no_grad()
def predict(inputs):
    model.eval()
    return torch.softmax(model(inputs), dim=1)


def validate():
    outputs = torch.cat([predict(part) for part in x[256:].split(64)])
    return F.cross_entropy(outputs, y[256:]).item()  # expect: loss/double-softmax


for epoch in range(5):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate())
