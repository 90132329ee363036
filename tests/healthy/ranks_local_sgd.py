# run: torchrun --nproc-per-node 2 ranks_local_sgd.py
"""Local SGD: the ranks go their own ways and average their weights every fourth step."""
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.distributed.init_process_group("gloo")
world = torch.distributed.get_world_size()
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] > 0).long()
data = TensorDataset(x, y)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
for epoch in range(2):
    sampler.set_epoch(epoch)
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 4 == 0:
            with torch.no_grad():
                for p in model.parameters():
                    torch.distributed.all_reduce(p)
                    p /= world
torch.distributed.destroy_process_group()
