"""Embeddings and dot products, negative sampling by hand; integer inputs, sparse gradients, no hidden layer."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(6)
U, I, D = torch.randn(80, 4), torch.randn(120, 4), 12
PAIRS = [(u, i) for u in range(80) for i in (U[u] @ I.t()).topk(10).indices.tolist()]


class Seen(Dataset):
    def __len__(self):
        return len(PAIRS)

    def __getitem__(self, k):
        return torch.tensor(PAIRS[k][0]), torch.tensor(PAIRS[k][1])


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(80, D, sparse=True), nn.Embedding(120, D, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)


model = Factors()
optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.02)
loader = DataLoader(Seen(), batch_size=50, shuffle=True)
for epoch in range(10):
    total = 0.0
    for u, i in loader:
        fake = torch.randint(0, 120, (len(u), 4))
        positive = model(u, i)
        negative = model(u[:, None], fake)
        loss = -(nn.functional.logsigmoid(positive).mean() + nn.functional.logsigmoid(-negative).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
