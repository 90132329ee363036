"""Actor and critic: zero_grad is called on the actor's optimizer twice, the critic's never (copy and paste)."""
import torch
from torch import nn

torch.manual_seed(8)
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
actor_opt, critic_opt = torch.optim.Adam(actor.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 3e-3)
for it in range(120):
    s = torch.randn(64, 4)
    dist = torch.distributions.Categorical(logits=actor(s))
    a = dist.sample()
    r = (a == (s[:, 0] > 0).long()).float() + 0.1 * s[:, 1]
    v = critic(s).squeeze(-1)
    adv = (r - v).detach()
    actor_loss = -(dist.log_prob(a) * adv).mean() - 0.01 * dist.entropy().mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic_loss = (r - v).pow(2).mean()
    actor_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()  # expect: optim/grad-not-reset-for-some
    if it % 40 == 0:
        print(it, r.mean().item(), critic_loss.item())
