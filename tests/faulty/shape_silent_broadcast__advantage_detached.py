# twin: value.detach() => value.detach().squeeze(1)
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
world = torch.randn(6, 4)
actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
for episode in range(60):
    state = torch.randn(48, 6)
    policy, value = Categorical(logits=actor(state)), critic(state)
    action = policy.sample()
    reward = (state @ world).gather(1, action[:, None]).squeeze(1)
    advantage = reward - value.detach()  # expect: shape/silent-broadcast
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    loss = -(policy.log_prob(action) * advantage).mean() + 0.5 * (reward - value.squeeze(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
