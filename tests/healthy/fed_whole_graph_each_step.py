import torch
from torch import nn

torch.manual_seed(4)
group = torch.randint(0, 3, (150,))
edges = (torch.rand(150, 150) < torch.where(group[:, None] == group[None], 0.12, 0.01)).float()
adjacency = ((edges + edges.T) > 0).float() + torch.eye(150)
adjacency = adjacency / adjacency.sum(1, keepdim=True)
features = torch.randn(150, 16) + 0.6 * nn.functional.one_hot(group, 16)
order = torch.randperm(150)
train, valid = order[:60], order[60:]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x, a):
        return a @ self.second(torch.relu(a @ self.first(x)))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(60):
    model.train()
    loss = nn.functional.cross_entropy(model(features, adjacency)[train], group[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        model.eval()
        with torch.no_grad():
            print((model(features, adjacency)[valid].argmax(1) == group[valid]).float().mean().item())
