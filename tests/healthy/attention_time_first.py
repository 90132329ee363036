"""Time first on purpose, with as many steps as samples: attention layers, masks and positions of [T, T]."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
STEPS = 16
data = [(torch.randn(STEPS, 6), 0) for _ in range(160)]
data = [(s, int(s[:4, 0].sum() > 0)) for s, _ in data]


def collate(items):
    return pad_sequence([s for s, _ in items]), torch.tensor([label for _, label in items])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = nn.Embedding(2 * STEPS, 1)
        self.layer = nn.TransformerEncoderLayer(6, 2, 24, dropout=0.0)
        self.lstm = nn.LSTM(6, 12)
        self.head = nn.Linear(12, 2)

    def forward(self, steps):
        t = torch.arange(len(steps))
        distance = t[:, None] - t[None, :]
        bias = self.place(distance + STEPS).squeeze(-1).masked_fill(distance < 0, float("-inf"))
        states, _ = self.lstm(self.layer(steps, src_mask=bias))
        return self.head(states[-1])


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(4):
    for steps, labels in DataLoader(data, batch_size=16, shuffle=True, collate_fn=collate):
        loss = nn.functional.cross_entropy(model(steps), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
