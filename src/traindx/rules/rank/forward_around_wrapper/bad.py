import tempfile

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

with tempfile.TemporaryDirectory() as folder:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    y = (x[:, 0] > 0).long()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(4):
        for rows in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model.module(x[rows]), y[rows])  # expect: rank/forward-around-wrapper
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.distributed.destroy_process_group()
