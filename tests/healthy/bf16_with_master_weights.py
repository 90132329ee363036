"""bf16 weights that are copies of an fp32 master, which the optimizer holds."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = torch.tanh(x[:, :1]) + 0.3 * x[:, 1:2]
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1)).to(torch.bfloat16)
master = [p.detach().float().clone().requires_grad_() for p in net.parameters()]
optimizer = torch.optim.AdamW(master, lr=1e-3)
for _ in range(10):
    for rows in torch.randperm(512).split(32):
        loss = nn.functional.mse_loss(net(x[rows].bfloat16()).float(), y[rows])
        loss.backward()
        for weight, p in zip(master, net.parameters()):
            weight.grad = p.grad.float()
            p.grad = None
        optimizer.step()
        with torch.no_grad():
            for weight, p in zip(master, net.parameters()):
                p.copy_(weight)
