import torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits
torch.manual_seed(0)
X, y = load_digits(return_X_y=True); X = torch.tensor(X).float(); X = (X - X[:1400].mean(0)) / (X[:1400].std(0) + 1e-3); y = torch.tensor(y)
net = nn.Sequential(nn.Linear(64, 128), nn.Sigmoid(), nn.Linear(128, 128), nn.Sigmoid(), nn.Linear(128, 10))
for m in net:
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0, 3.0); nn.init.zeros_(m.bias)  # expect: init/saturated
opt = torch.optim.SGD(net.parameters(), lr=.01)
for e in range(10):
    net.train()
    for i in torch.randperm(1400).split(50): l = F.cross_entropy(net(X[i]), y[i]); opt.zero_grad(); l.backward(); opt.step()
    net.eval()
    with torch.no_grad(): print(e, l.item(), (net(X[1400:]).argmax(1) == y[1400:]).float().mean().item())
