import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 16)
x[211] = 0.5
y = (x[:, :8].mean(1) > x[:, 8:].mean(1)).float()


class Standardised(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, series):
        series = (series - series.mean(1, keepdim=True)) / series.std(1, keepdim=True)  # expect: numeric/nonfinite
        return self.body(series).squeeze(1)


model = Standardised()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
for _ in range(8):
    for rows in torch.randperm(320).split(32):
        loss = loss_of(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
