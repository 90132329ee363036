"""Right answers about six nodes each, divided by the number of graphs: an accuracy above 1."""
# twin: total += len(labels) => total += labels.numel()
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6, 3)
y = (x[..., 0] + x[..., 1] > 0).long()
net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
train, valid = torch.utils.data.TensorDataset(x[:300], y[:300]), torch.utils.data.TensorDataset(x[300:], y[300:])
for epoch in range(4):
    net.train()
    for inputs, labels in torch.utils.data.DataLoader(train, 30, shuffle=True):
        loss = nn.functional.cross_entropy(net(inputs).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for inputs, labels in torch.utils.data.DataLoader(valid, 25):
            correct += (net(inputs).argmax(-1) == labels).sum().item()
            total += len(labels)
    print(f"epoch {epoch} accuracy {correct / total:.3f}")  # expect: record/metric-mistake
