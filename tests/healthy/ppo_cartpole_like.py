"""PPO on a one-dimensional balancing task: the surrogate is maximised, its loss has no meaning, batches are reused for some epochs."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(4)


class Pole:
    def reset(self, n):
        self.s = 0.2 * torch.randn(n, 2)
        return self.s

    def step(self, a):
        v = self.s[:, 1] + 0.1 * (2 * a.float() - 1) + 0.05 * self.s[:, 0]
        self.s = torch.stack([self.s[:, 0] + 0.1 * v, v], 1)
        return self.s, 1.0 - self.s[:, 0].abs()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, s):
        h = self.body(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


net, env = ActorCritic(), Pole()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
for iteration in range(6):
    states, actions, logps, values, rewards = [], [], [], [], []
    s = env.reset(16)
    for _ in range(20):
        with torch.no_grad():
            dist, v = net(s)
            a = dist.sample()
        states.append(s), actions.append(a), logps.append(dist.log_prob(a)), values.append(v)
        s, r = env.step(a)
        rewards.append(r)
    returns, g = [], torch.zeros(16)
    for r in reversed(rewards):
        g = r + 0.95 * g
        returns.insert(0, g)
    S, A, L = torch.cat(states), torch.cat(actions), torch.cat(logps)
    R, V = torch.cat(returns), torch.cat(values)
    adv = R - V
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(4):
        for rows in torch.randperm(len(S)).split(80):
            dist, v = net(S[rows])
            ratio = (dist.log_prob(A[rows]) - L[rows]).exp()
            surrogate = torch.min(ratio * adv[rows], ratio.clamp(0.8, 1.2) * adv[rows]).mean()
            loss = -surrogate + 0.5 * (v - R[rows]).pow(2).mean() - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    print(iteration, torch.stack(rewards).mean().item())
