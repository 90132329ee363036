# allow: curve/plateau, curve/oscillating
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-3)
best = torch.randn(4, 3)


def update(state):
    chosen = Categorical(logits=policy(state))
    action = chosen.sample()
    reward = (action == (state @ best).argmax(1)).float()
    value = critic(state)
    advantage = reward.unsqueeze(1) - value
    actor = -(chosen.log_prob(action) * advantage.detach()).mean()  # expect: shape/silent-broadcast
    return actor + 0.5 * advantage.pow(2).mean()


for _ in range(60):
    loss = update(torch.randn(32, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
