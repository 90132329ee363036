# run: torchrun --nproc-per-node 2 bad.py
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
x = torch.randn(257, 8)
y = (x[:, 0] > 0).long()
part = TensorDataset(x[rank::world], y[rank::world])
loader = DataLoader(part, batch_size=16)  # expect: rank/uneven-steps
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.distributed.destroy_process_group()
