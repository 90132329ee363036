# allow: curve/plateau
import torch
from torch import nn

torch.manual_seed(0)
steps = torch.randint(1, 4, (160, 1))
tokens = (torch.randint(0, 11, (160, 1)) + steps * torch.arange(12)) % 11


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 11)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(160).split(32):
        logits = model(tokens[rows])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[rows].flatten())  # expect: loss/target-shift-wrong
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
