# run: torchrun --nproc-per-node 2 ranks_no_sync_accumulation.py
"""Accumulation that averages over ranks once: the first backwards of a window run under no_sync. Buffers are not broadcast."""
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)), broadcast_buffers=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(rank)
for step in range(10):
    optimizer.zero_grad()
    for part in range(4):
        rows = torch.randint(0, 256, (16,))
        with model.no_sync() if part < 3 else nullcontext():
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / 4
            loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
