# allow: curve/plateau, curve/oscillating
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3), nn.Softmax(dim=-1))  # expect: loss/double-softmax
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
best = torch.randn(4, 3)
for _ in range(60):
    state = torch.randn(32, 4)
    chosen = Categorical(logits=policy(state))
    action = chosen.sample()
    reward = (action == (state @ best).argmax(1)).float()
    loss = -(chosen.log_prob(action) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
