# run: torchrun --nproc-per-node 2 ranks_ddp_sampler_and_rank_zero.py
"""DDP as the tutorials write it: a sampler with set_epoch, and logging, evaluation and checkpoints on rank 0 alone."""
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
x = torch.randn(320, 8)
y = (x[:, 0] > 0).long()
train, held = TensorDataset(x[:256], y[:256]), (x[256:], y[256:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=32, sampler=sampler)
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    model.train()
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    mean = loss.detach().clone()
    torch.distributed.all_reduce(mean)
    if rank == 0:
        net.eval()
        with torch.no_grad():
            right = (net(held[0]).argmax(1) == held[1]).float().mean()
        print(f"epoch {epoch}: loss {mean.item() / 2:.3f}, accuracy {right.item():.3f}")
        torch.save(net.state_dict(), "last.pt")
    torch.distributed.barrier()
torch.distributed.destroy_process_group()
