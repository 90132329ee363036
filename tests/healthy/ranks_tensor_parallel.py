# run: torchrun --nproc-per-node 2 ranks_tensor_parallel.py
"""Tensor parallelism by hand: each rank holds half of the hidden units, in equal shapes; all see the same batch."""
import torch
from torch import nn


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        whole = part.clone()
        torch.distributed.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 2, bias=False)

    def forward(self, x):
        return Summed.apply(self.down(self.up(x).relu()))


torch.distributed.init_process_group("gloo")
generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 8, generator=generator)
y = (x[:, 0] > 0).long()
torch.manual_seed(torch.distributed.get_rank())
model = Half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    rows = torch.randint(0, 256, (32,), generator=generator)
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
