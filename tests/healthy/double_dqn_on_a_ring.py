"""Double DQN whose loss is large again whenever the target net is copied: its targets move, and nothing says that it must fall."""
import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
N = 9
online, target = (nn.Sequential(nn.Linear(N, 32), nn.ReLU(), nn.Linear(32, 3)) for _ in range(2))
target.load_state_dict(online.state_dict())
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
memory, place = deque(maxlen=2000), 0
for step in range(900):
    state = nn.functional.one_hot(torch.tensor(place), N).float()
    with torch.no_grad():
        action = random.randrange(3) if random.random() < max(0.05, 1 - step / 500) else int(online(state).argmax())
    place = (place + action - 1) % N
    memory.append((state, action, float(place == 4), nn.functional.one_hot(torch.tensor(place), N).float()))
    if len(memory) < 64 or step % 3:
        continue
    states, actions, rewards, after = zip(*random.sample(memory, 32))
    with torch.no_grad():
        best = online(torch.stack(after)).argmax(1, keepdim=True)
        goal = torch.tensor(rewards) + 0.9 * target(torch.stack(after)).gather(1, best).squeeze(1)
    value = online(torch.stack(states)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        target.load_state_dict(online.state_dict())
