# allow: curve/plateau
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ids = torch.randint(0, 12, (256, 10))
y = (ids[:, :5].sum(1) > ids[:, 5:].sum(1)).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.place = nn.Parameter(0.1 * torch.randn(10, 16))
        layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)  # expect: shape/batch-first-confusion
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens) + self.place).mean(1))


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(ids, y), batch_size=32, shuffle=True)
for _ in range(5):
    for tokens, label in loader:
        loss = nn.functional.cross_entropy(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
