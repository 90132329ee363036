# twin: / keep.sum(1, keepdim=True) => / keep.sum(1, keepdim=True).clamp(min=1)
"""A pooling helper divides by the number of kept tokens; empty reviews make it 0/0."""
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(5)


def review(i):
    g = torch.Generator().manual_seed(i)
    n = int(torch.randint(0 if i % 97 == 50 else 3, 1 if i % 97 == 50 else 12, (), generator=g))
    words = torch.randint(1, 40, (n,), generator=g)
    return words, int((words < 15).sum() * 2 > n)


def collate(rows):
    ids = torch.zeros(len(rows), 12, dtype=torch.long)
    for i, (w, _) in enumerate(rows):
        ids[i, :len(w)] = w
    return ids, torch.tensor([l for _, l in rows])


def masked_mean(h, keep):
    return (h * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)  # expect: numeric/nonfinite


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(40, 24), nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, ids):
        return self.out(masked_mean(self.embed(ids), (ids != 0).float()))


loader = DataLoader([review(i) for i in range(400)], 20, shuffle=True, collate_fn=collate)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    for ids, labels in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(ids), labels)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
