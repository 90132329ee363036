# run: torchrun --nproc-per-node 2 ranks_search_one_model_each.py
"""A search: each rank trains a model of its own at a learning rate of its own, on all of the data, and only the scores meet."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 8, generator=generator)
y = (x[:, 0] > 0).long()
torch.manual_seed(rank)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=(0.1, 0.3)[rank])
for epoch in range(2):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
scores = [torch.zeros(()) for _ in range(world)]
torch.distributed.all_gather(scores, loss.detach())
torch.distributed.destroy_process_group()
