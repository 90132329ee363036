# run: torchrun --nproc-per-node 2 ranks_post_local_sgd.py
"""torch's own post-local SGD: DDP's hook averages within a subgroup (here of one rank), and the weights every fourth step."""
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
alone, _ = torch.distributed.new_subgroups(1)
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
model.register_comm_hook(PostLocalSGDState(process_group=None, subgroup=alone, start_localSGD_iter=1), post_localSGD_hook)
averager = PeriodicModelAverager(period=4, warmup_steps=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(12):
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averager.average_parameters(model.parameters())
torch.distributed.destroy_process_group()
