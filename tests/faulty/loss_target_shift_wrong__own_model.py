# allow: curve/plateau
"""Targets shifted by the batch function, then once more in forward."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
text = (torch.arange(2400) * torch.tensor([1, 2, 3, 5]).repeat_interleave(600)).cumsum(0) % 17


def get_batch(size=24, block=16):
    at = torch.randint(0, len(text) - block - 2, (size,)).tolist()
    return torch.stack([text[i:i + block] for i in at]), torch.stack([text[i + 1:i + block + 1] for i in at])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(17, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 17)

    def forward(self, ids, targets):
        logits = self.head(self.rnn(self.embed(ids))[0])[:, :-1]
        return F.cross_entropy(logits.reshape(-1, 17), targets[:, 1:].reshape(-1))  # expect: loss/target-shift-wrong


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(40):
    loss = model(*get_batch())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
