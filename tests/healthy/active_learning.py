"""Active learning: the labelled set grows by the least certain samples; each round starts a new model on all labels so far."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(9)
x = torch.randn(1200, 6)
y = ((x[:, 0] ** 2 + x[:, 1] ** 2) > 1.7).long() + ((x[:, 2] > 1).long())
pool, test = TensorDataset(x[:1000], y[:1000]), (x[1000:], y[1000:])
labelled = torch.randperm(1000)[:60].tolist()


def train_model(indices):
    model = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(Subset(pool, indices), batch_size=20, shuffle=True)
    for _ in range(12):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return model.eval()


for round_ in range(4):
    model = train_model(labelled)
    with torch.no_grad():
        accuracy = (model(test[0]).argmax(1) == test[1]).float().mean().item()
        rest = [i for i in range(1000) if i not in set(labelled)]
        p = model(x[rest]).softmax(1)
        entropy = -(p * p.clamp(min=1e-9).log()).sum(1)
        ask = entropy.topk(60).indices.tolist()
    print(round_, len(labelled), accuracy)
    labelled += [rest[i] for i in ask]
