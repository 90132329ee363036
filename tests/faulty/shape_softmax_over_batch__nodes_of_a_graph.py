"""Node classification on a whole graph: log_softmax runs over the nodes, and the loss looks at the training nodes only."""
import torch
import torch.nn.functional as F
from torch import nn


class GCN(nn.Module):
    def __init__(self, wide, classes):
        super().__init__()
        self.first, self.second = nn.Linear(wide, 24), nn.Linear(24, classes)

    def forward(self, x, adjacency):
        h = F.dropout(F.relu(adjacency @ self.first(x)), 0.3, training=self.training)
        return F.log_softmax(adjacency @ self.second(h), dim=0)  # expect: shape/softmax-over-batch


torch.manual_seed(0)
y = torch.randint(0, 4, (240,))
links = (torch.rand(240, 240) < torch.where(y[:, None] == y[None], 0.06, 0.01)).float()
links = ((links + links.t() + torch.eye(240)) > 0).float()
adjacency = links / links.sum(1, keepdim=True)
x = torch.randn(240, 12) + F.one_hot(y, 12)
train = torch.rand(240) < 0.4
model = GCN(12, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(60):
    model.train()
    loss = F.nll_loss(model(x, adjacency)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
