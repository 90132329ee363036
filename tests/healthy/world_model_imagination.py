"""A world model in small (Dreamer style): the model learns from replay, the actor from imagined rollouts whose start is detached, the critic from detached returns."""
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)


class World(nn.Module):
    def __init__(self, state=3, action=1, hidden=32):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(state, hidden), nn.ELU())
        self.cell = nn.GRUCell(action, hidden)
        self.decode, self.reward = nn.Linear(hidden, state), nn.Linear(hidden, 1)

    def observe(self, states, actions):
        h = self.encode(states[:, 0])
        out = []
        for t in range(actions.size(1)):
            h = self.cell(actions[:, t], h)
            out.append(h)
        return torch.stack(out, 1)


def environment(n=400):
    state = torch.randn(n, 3)
    states, actions, rewards = [state], [], []
    for _ in range(6):
        action = torch.rand(n, 1) * 2 - 1
        state = 0.9 * state + torch.cat([action, -action, 0.1 * action], 1)
        states.append(state)
        actions.append(action)
        rewards.append(-(state[:, 0] ** 2))
    return torch.stack(states, 1), torch.stack(actions, 1), torch.stack(rewards, 1)


world = World()
actor = nn.Sequential(nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 1))
world_opt = torch.optim.Adam(world.parameters(), lr=3e-3)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
states, actions, rewards = environment()
history = deque(maxlen=20)
for step in range(50):
    rows = torch.randint(0, len(states), (32,))
    features = world.observe(states[rows], actions[rows])
    model_loss = F.mse_loss(world.decode(features), states[rows, 1:]) + F.mse_loss(world.reward(features).squeeze(-1), rewards[rows])
    world_opt.zero_grad()
    model_loss.backward()
    nn.utils.clip_grad_norm_(world.parameters(), 10.0)
    world_opt.step()

    h = features.detach().flatten(0, 1)
    imagined, values, logps = [], [], []
    for _ in range(4):
        mean, raw = actor(h.detach()).chunk(2, -1)
        policy = torch.distributions.Normal(mean.tanh(), F.softplus(raw) + 0.1)
        action = policy.rsample()
        h = world.cell(action, h)
        imagined.append(h)
        logps.append(policy.entropy().sum(-1))
    path = torch.stack(imagined)
    gains = world.reward(path).squeeze(-1)
    value = critic(path).squeeze(-1)
    returns, running = [], value[-1]
    for gain in reversed(gains):
        running = gain + 0.95 * running
        returns.append(running)
    returns = torch.stack(returns[::-1])
    actor_loss = -(returns.mean() + 1e-3 * torch.stack(logps).mean())
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic_loss = F.mse_loss(critic(path.detach()).squeeze(-1), returns.detach())
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    history.append((model_loss.item(), actor_loss.item(), critic_loss.item()))
    if step % 30 == 0:
        print(step, history[-1])
