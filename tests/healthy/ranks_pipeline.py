# run: torchrun --nproc-per-node 2 ranks_pipeline.py
"""A pipeline of two stages: each rank holds other weights, and both see the same batch."""
import torch
from torch import nn

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
stage = nn.Sequential(nn.Linear(8, 16), nn.ReLU()) if rank == 0 else nn.Linear(16, 2)
optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(1)
for step in range(12):
    rows = torch.randint(0, 256, (32,), generator=generator)
    optimizer.zero_grad()
    if rank == 0:
        hidden = stage(x[rows])
        torch.distributed.send(hidden.detach(), dst=1)
        gradient = torch.empty_like(hidden)
        torch.distributed.recv(gradient, src=1)
        hidden.backward(gradient)
    else:
        hidden = torch.empty(32, 16)
        torch.distributed.recv(hidden, src=0)
        hidden.requires_grad_()
        nn.functional.cross_entropy(stage(hidden), y[rows]).backward()
        torch.distributed.send(hidden.grad, dst=0)
    optimizer.step()
torch.distributed.destroy_process_group()
