"""Contrastive learning of user sessions with a queue of past embeddings as negatives."""
# twin: torch.cat([self.queue, keys]) => torch.cat([self.queue, keys.detach()])
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
USERS, ITEMS = 40, 60
taste = torch.randn(USERS, ITEMS).mul(1.5).softmax(1)


class Sessions(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.items = nn.Embedding(ITEMS, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, dim)

    def forward(self, ids):
        return F.normalize(self.out(self.mix(self.items(ids))[0].mean(1)), dim=1)


class Memory:
    """The most recent keys, oldest first."""

    def __init__(self, size, dim):
        self.size = size
        self.queue = F.normalize(torch.randn(size, dim), dim=1)

    def negatives(self):
        return self.queue.detach()

    def push(self, keys):
        self.queue = torch.cat([self.queue, keys])[-self.size:]  # expect: memory/graph-kept


def views(n, length=12):
    users = torch.randint(0, USERS, (n,))
    return [torch.multinomial(taste[users], length, replacement=True) for _ in range(2)]


model, memory = Sessions(), Memory(512, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(320):
    first, second = views(64)
    anchor, positive = model(first), model(second)
    logits = torch.cat([(anchor * positive).sum(1, keepdim=True), anchor @ memory.negatives().T], 1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    memory.push(positive)
    if step % 100 == 99:
        print(f"step {step + 1} loss {loss.item():.3f} positives ranked first {(logits.argmax(1) == 0).float().mean():.2f}")
