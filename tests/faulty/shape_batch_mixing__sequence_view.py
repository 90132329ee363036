# allow: curve/plateau
"""[T, B, H] read as [B, T, H] by view: the right shape, the wrong samples."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ids = torch.randint(0, 12, (240, 8))
y = (ids[:, 0] > 5).long()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.rnn = nn.LSTM(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        b, t = tokens.shape
        states, _ = self.rnn(self.embed(tokens.t()))
        states = states.view(b, t, -1)  # expect: shape/batch-mixing
        return self.head(states.mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(ids, y), batch_size=24, shuffle=True)
for _ in range(5):
    for tokens, label in loader:
        loss = nn.functional.cross_entropy(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
