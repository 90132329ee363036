"""Advantage times log-probability with equal shapes, entropy from the distribution, a critic on [B]."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=5e-3)
best = torch.randn(4, 3)
for _ in range(80):
    state = torch.randn(32, 4)
    chosen = Categorical(logits=policy(state))
    action = chosen.sample()
    reward = (action == (state @ best).argmax(1)).float()
    value = critic(state).squeeze(-1)
    advantage = (reward - value).detach()
    loss = -(chosen.log_prob(action) * advantage).mean() + 0.5 * (value - reward).pow(2).mean() - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
