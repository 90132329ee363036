"""Teacher forcing; the unreduced loss is masked by hand, and a weight of 0 leaves padding out of a second one."""
import torch
from torch import nn

torch.manual_seed(0)
PAD, BOS, V, T = 0, 1, 10, 12
lengths = torch.randint(3, 9, (256, 1))
source = torch.randint(2, V, (256, T)).masked_fill(torch.arange(T) >= lengths, PAD)
target = torch.where(source == PAD, PAD, 2 + (source + 1) % (V - 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, 24, padding_idx=PAD)
        self.encode = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.decode = nn.GRU(24 + 48, 32, batch_first=True)
        self.out = nn.Linear(32, V)

    def forward(self, src, previous):
        memory, _ = self.encode(self.embed(src))
        states, _ = self.decode(torch.cat([self.embed(previous), memory], 2))
        return self.out(states)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weight = torch.ones(V)
weight[PAD] = 0
for _ in range(4):
    for rows in torch.randperm(256).split(32):
        tgt = target[rows]
        previous = torch.cat([torch.full((len(rows), 1), BOS), tgt[:, :-1]], 1)
        logits = model(source[rows], previous)
        each = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten(), reduction="none")
        mask = (tgt != PAD).flatten().float()
        loss = (each * mask).sum() / mask.sum() + 0.1 * nn.functional.cross_entropy(logits.transpose(1, 2), tgt, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
