import random

import torch
from torch import nn

random.seed(8)
torch.manual_seed(8)
SIZE = 5


def look(position):
    return torch.tensor([position[0] / SIZE - 0.4, position[1] / SIZE - 0.4, 1.0 - 2 * (position == (4, 4))])


def move(position, action):
    dx, dy = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
    new = (min(max(position[0] + dx, 0), 4), min(max(position[1] + dy, 0), 4))
    return new, 1.0 if new == (4, 4) else -0.02, new == (4, 4)


online = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))
target = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
memory, position = [], (0, 0)
for step in range(300):
    with torch.no_grad():
        best = online(look(position)[None]).argmax(1).item()
    action = random.randrange(4) if random.random() < 0.3 else best
    new, reward, done = move(position, action)
    memory.append((look(position), action, reward, look(new), done))
    position = (0, 0) if done else new
    if len(memory) < 32:
        continue
    states, actions, rewards, following, ends = zip(*random.sample(memory, 32))
    with torch.no_grad():
        choice = online(torch.stack(following)).argmax(1, keepdim=True)
        future = target(torch.stack(following)).gather(1, choice).squeeze(1)
        wanted = torch.tensor(rewards) + 0.95 * future * (1 - torch.tensor(ends).float())
    value = online(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        target.load_state_dict(online.state_dict())
