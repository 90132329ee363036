"""A Poisson likelihood by hand over a rate that a ReLU makes 0: the loss is NaN now and then, the gradients never are."""
import torch
from torch import nn


class PoissonLikelihood(nn.Module):
    def forward(self, rate, count):
        return (rate - count * torch.log(rate)).mean()  # expect: numeric/nonfinite


torch.manual_seed(0)
x = torch.randn(2000, 4)
count = torch.poisson(torch.exp(0.7 * x[:, 0] - 0.3))
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU())
nn.init.constant_(model[2].bias, 1.0)
criterion = PoissonLikelihood()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    for rows in torch.randperm(2000).split(64):
        loss = criterion(model(x[rows]).squeeze(1), count[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
