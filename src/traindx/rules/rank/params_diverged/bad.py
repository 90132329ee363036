# run: torchrun --nproc-per-node 2 bad.py
import torch
from torch import nn

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 8, generator=generator)
y = (x[:, 0] > 0).long()
torch.manual_seed(rank)  # each rank draws rows of its own
for step in range(12):
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        torch.distributed.all_reduce(p.grad)
        p.grad /= world
    optimizer.step()  # expect: rank/params-diverged
torch.distributed.destroy_process_group()
