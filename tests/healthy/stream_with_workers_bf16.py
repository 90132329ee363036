"""Streaming IterableDataset with workers splitting by worker info; bf16 autocast; accumulation 2 averaged; one validation stream."""

import torch, torch.nn as nn
from torch.utils.data import IterableDataset, DataLoader, get_worker_info


class Stream(IterableDataset):
    def __init__(s, n, seed):
        s.n, s.seed = n, seed

    def __iter__(s):
        w = get_worker_info()
        k, m = (w.id, w.num_workers) if w else (0, 1)
        g = torch.Generator().manual_seed(s.seed + 7919 * k)
        for i in range(k, s.n, m):
            x = torch.randn(16, generator=g)
            yield x, (x[:4].sum() > x[4:8].sum()).long()


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 2))
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    dl, vl = DataLoader(Stream(1600, 1), 32, num_workers=2), DataLoader(Stream(320, 10**6), 64)
    k = 2
    for j, (x, y) in enumerate(dl):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x), y) / k
        loss.backward()
        if (j + 1) % k == 0:
            opt.step()
            opt.zero_grad(set_to_none=True)
    net.eval()
    c = n = 0
    with torch.no_grad():
        for x, y in vl:
            c += (net(x).argmax(1) == y).sum()
            n += len(y)
    print("val", (c / n).item())


if __name__ == "__main__":
    main()
