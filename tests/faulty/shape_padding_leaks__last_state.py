import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
PAD, V = 0, 30
def batch(n=32):
    T = int(torch.randint(12, 18, ())); L = torch.randint(3, T + 1, (n, 1)); L[0] = T
    x = torch.randint(1, V, (n, T)); x[:, 1] = torch.randint(1, 4, (n,))
    return x.masked_fill(torch.arange(T) >= L, PAD), x[:, 1] - 1, L[:, 0]
class Net(nn.Module):
    def __init__(s): super().__init__(); s.e = nn.Embedding(V, 16, padding_idx=0); s.r = nn.LSTM(16, 16, batch_first=True); s.f = nn.Linear(16, 3)
    def forward(s, x):
        out, _ = s.r(s.e(x))
        return s.f(out[:, -1])  # expect: shape/padding-leaks
net = Net(); opt = torch.optim.Adam(net.parameters(), 5e-3)
for it in range(40):
    x, y, L = batch()
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
