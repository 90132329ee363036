"""A hand-written log-likelihood without its minus."""
# allow: curve/diverging
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def likelihood_loss(logits, labels):
    log_p = torch.log_softmax(logits, dim=1)
    picked = log_p.gather(1, labels[:, None])
    return picked.mean()  # expect: loss/wrong-direction


for _ in range(6):
    for rows in torch.randperm(256).split(32):
        loss = likelihood_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
