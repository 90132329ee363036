# run: torchrun --nproc-per-node 2 bad.py
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
model.to(torch.float64)  # expect: rank/changed-after-wrapping
x = x.double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)  # each rank draws rows of its own
for step in range(12):
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
