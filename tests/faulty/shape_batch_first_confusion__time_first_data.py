# allow: curve/plateau
"""The collate function puts time first, the layer expects the batch there; every step has a label."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
signals = torch.randn(200, 12, 3)
data = [(s, (s.cumsum(0)[:, 0] > 0).long()) for s in signals]


def collate(items):
    return pad_sequence([s for s, _ in items]), pad_sequence([label for _, label in items])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 16, batch_first=True)  # expect: shape/batch-first-confusion
        self.head = nn.Linear(16, 2)

    def forward(self, steps):
        return self.head(self.rnn(steps)[0])


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    for steps, labels in DataLoader(data, batch_size=20, shuffle=True, collate_fn=collate):
        loss = nn.functional.cross_entropy(model(steps).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
