"""Policy gradient with a running baseline; costs are minimised in the second half, so that the sign is the other."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = 0.0
for step in range(120):
    context = torch.randn(64, 4)
    log_p = policy(context).log_softmax(1)
    action = torch.multinomial(log_p.detach().exp(), 1)
    reward = (action.squeeze(1) == context[:, :3].argmax(1)).float()
    picked = log_p.gather(1, action).squeeze(1)
    if step < 60:
        loss = -(picked * (reward - baseline)).mean()
    else:
        loss = (picked * (1 - reward)).mean() + 0.01 * (log_p.exp() * log_p).sum(1).mean()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
