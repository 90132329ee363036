import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(192, 6, 4)
y = (x.amax(1).sum(1) > 5).long()


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)
        self.head = nn.Linear(4, 2)

    def forward(self, items):
        weights = torch.softmax(self.score(items), dim=0)  # expect: shape/softmax-over-batch
        return self.head((weights * items).sum(1))


model = Pool()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(192).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
