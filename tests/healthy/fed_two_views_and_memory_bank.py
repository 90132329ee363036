import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)
data = TensorDataset(torch.randn(320, 16) + 2 * nn.functional.one_hot(torch.arange(320) % 8, 16))
loader, bank_loader = DataLoader(data, batch_size=40, shuffle=True), DataLoader(data, batch_size=80)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for epoch in range(5):
    encoder.train()
    for (x,) in loader:
        views = [nn.functional.normalize(encoder(x + 0.2 * torch.randn_like(x)), dim=1) for _ in range(2)]
        logits = views[0] @ views[1].T / 0.2
        loss = nn.functional.cross_entropy(logits, torch.arange(len(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    encoder.eval()
    with torch.no_grad():
        bank = torch.cat([encoder(x) for (x,) in bank_loader])
    print(epoch, bank.std().item())
