# allow: data/class-imbalance
"""Time first; the tags are padded with their own filler."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
data = []
for n in torch.randint(4, 16, (200,)).tolist():
    words = torch.randint(1, 10, (n,))
    data.append((words, words % 3))


def collate(items):
    return pad_sequence([w for w, _ in items]), pad_sequence([t for _, t in items], padding_value=3)


model = nn.Sequential(nn.Embedding(10, 16, padding_idx=0), nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(5):
    for words, tags in DataLoader(data, batch_size=20, shuffle=True, collate_fn=collate):
        loss = criterion(model(words).view(-1, 4), tags.view(-1))  # expect: loss/padding-counted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
