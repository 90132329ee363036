"""An actor-critic in the manner of SAC: a temperature outside any module, critics that only pass the actor's gradients on."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
target = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
opt_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
opt_alpha = torch.optim.Adam([log_alpha], lr=1e-3)


def act(state):
    mean, log_std = actor(state).chunk(2, dim=1)
    normal = torch.distributions.Normal(mean, log_std.clamp(-4, 1).exp())
    action = normal.rsample()
    return action.tanh(), normal.log_prob(action)


for _ in range(60):
    state, action, following = torch.randn(64, 3), torch.rand(64, 1) * 2 - 1, torch.randn(64, 3)
    reward = -(action - state[:, :1].tanh()) ** 2
    with torch.no_grad():
        next_action, log_prob = act(following)
        wanted = reward + 0.9 * (target(torch.cat([following, next_action], 1)) - log_alpha.exp() * log_prob)
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], 1)), wanted)
    opt_critic.zero_grad()
    critic_loss.backward()
    opt_critic.step()
    new_action, log_prob = act(state)
    actor_loss = (log_alpha.exp().detach() * log_prob - critic(torch.cat([state, new_action], 1))).mean()
    opt_actor.zero_grad()
    actor_loss.backward()
    opt_actor.step()
    alpha_loss = -(log_alpha * (log_prob.detach() - 1.0)).mean()
    opt_alpha.zero_grad()
    alpha_loss.backward()
    opt_alpha.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critic.parameters()):
            slow.lerp_(fast, 0.01)
