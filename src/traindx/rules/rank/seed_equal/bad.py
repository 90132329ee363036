# run: torchrun --nproc-per-node 2 bad.py
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 8, generator=generator)
y = (x[:, 0] > 0).long()


class Noisy(Dataset):
    def __len__(self):
        return len(x)

    def __getitem__(self, i):  # expect: rank/seed-equal
        return x[i] + 0.3 * torch.randn(8), y[i]


data = Noisy()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(0)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.distributed.destroy_process_group()
