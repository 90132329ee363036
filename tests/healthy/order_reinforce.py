"""REINFORCE: per-episode losses, gathered for a step over five episodes, divided by their number; RMSprop."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(policy.parameters(), lr=3e-3)
for _ in range(25):
    optimizer.zero_grad()
    for _ in range(5):
        state = torch.randn(10, 3)
        chosen = torch.distributions.Categorical(logits=policy(state))
        action = chosen.sample()
        reward = (action == (state[:, 0] > 0).long()).float() - 0.5
        loss = -(chosen.log_prob(action) * reward).sum() / 5
        loss.backward()
    optimizer.step()
