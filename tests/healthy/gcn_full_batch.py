"""A graph at once: dimension 0 is nodes, and every node's output depends on its neighbours; attention over edges too."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
N = 80
group = torch.arange(N) % 3
same = group[:, None] == group[None, :]
adjacency = (torch.rand(N, N) < torch.where(same, 0.25, 0.03)).float()
adjacency = ((adjacency + adjacency.T + torch.eye(N)) > 0).float()
degree = adjacency.sum(1)
normalised = adjacency / (degree[:, None] * degree[None, :]).sqrt()
features = F.one_hot(group, 3).float() + 1.2 * torch.randn(N, 3)
train = torch.rand(N) < 0.5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 16), nn.Linear(16, 3)
        self.left, self.right = nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x):
        h = F.relu(normalised @ self.first(x))
        scores = F.leaky_relu(self.left(h) + self.right(h).T).masked_fill(adjacency == 0, float("-inf"))
        return self.second(torch.softmax(scores, dim=1) @ h)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    model.train()
    out = model(features)
    loss = F.cross_entropy(out[train], group[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(features).argmax(1) == group)[~train].float().mean())
