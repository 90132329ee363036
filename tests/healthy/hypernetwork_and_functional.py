"""A hypernetwork writes the weights of a small net for each task; only the hypernetwork is trained; functional_call is used for the small net."""
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(7)
small = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
for p in small.parameters():
    p.requires_grad_(False)
shapes = {name: p.shape for name, p in small.named_parameters()}
total = sum(s.numel() for s in shapes.values())
hyper = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, total))
with torch.no_grad():
    hyper[-1].weight.mul_(0.1)
optimizer = torch.optim.Adam(hyper.parameters(), lr=3e-3)


def unpack(flat):
    out, at = {}, 0
    for name, shape in shapes.items():
        out[name] = flat[at:at + shape.numel()].view(shape)
        at += shape.numel()
    return out


for step in range(150):
    loss = 0.0
    for _ in range(4):
        amplitude, phase = torch.rand(()) * 2, torch.rand(()) * 3
        x = torch.rand(32, 1) * 4 - 2
        y = amplitude * torch.sin(x + phase)
        weights = unpack(hyper(torch.stack([amplitude, phase])))
        loss = loss + nn.functional.mse_loss(functional_call(small, weights, (x,)), y)
    loss = loss / 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
