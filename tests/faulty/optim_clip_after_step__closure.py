# twin: optimizer.step(closure); clip() => optimizer.step(lambda: (closure(), clip())[0])
"""The optimizer is given a closure; the clip stands after the step that has used the gradients."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 8)
y = x @ torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def train(rows):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        return loss

    def clip():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: optim/clip-after-step

    optimizer.step(closure); clip()


for epoch in range(5):
    for rows in torch.randperm(600).split(40):
        train(rows)
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(x), y).item())
