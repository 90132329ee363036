"""Quantisation-aware training: weights and activations rounded in the forward with a straight-through gradient, ranges by moving averages."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class FakeQuant(nn.Module):
    def __init__(self, bits=8, momentum=0.1):
        super().__init__()
        self.levels, self.momentum = 2 ** bits - 1, momentum
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.low.lerp_(x.min().clamp(max=0), self.momentum)
                self.high.lerp_(x.max().clamp(min=1e-3), self.momentum)
        scale = ((self.high - self.low) / self.levels).clamp(min=1e-8)
        return (Round.apply((x.clamp(self.low.item(), self.high.item()) - self.low) / scale)) * scale + self.low


class QuantLinear(nn.Linear):
    def __init__(self, *args):
        super().__init__(*args)
        self.activation = FakeQuant()

    def forward(self, x):
        scale = self.weight.detach().abs().max() / 127
        weight = self.weight + ((self.weight / scale).round() * scale - self.weight).detach()
        return nn.functional.linear(self.activation(x), weight, self.bias)


torch.manual_seed(6)
x = torch.rand(1000, 8) * 2 - 1
y = (torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.05 * torch.randn(1000)).unsqueeze(1)
loader = DataLoader(TensorDataset(x[:800], y[:800]), 40, shuffle=True)
model = nn.Sequential(QuantLinear(8, 48), nn.ReLU(), QuantLinear(48, 48), nn.ReLU(), QuantLinear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for inputs, target in loader:
        loss = nn.functional.mse_loss(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(x[800:]), y[800:]).item())
