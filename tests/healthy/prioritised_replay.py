"""A double DQN in a corridor with prioritised replay: importance weights, a hard target update, epsilon falling; rewards sparse at first."""
import random
from collections import deque

import torch
from torch import nn

random.seed(11)
torch.manual_seed(11)


class Corridor:
    def reset(self):
        self.at, self.time = 2, 0
        return self.state()

    def state(self):
        return torch.tensor([self.at / 8, self.time / 30])

    def step(self, action):
        self.at = max(0, min(8, self.at + (1 if action else -1)))
        self.time += 1
        done = self.at in (0, 8) or self.time >= 30
        return self.state(), (1.0 if self.at == 8 else -0.1 if self.at == 0 else 0.0), done


q, target = (nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
memory, priorities, env, steps = deque(maxlen=1000), deque(maxlen=1000), Corridor(), 0
for episode in range(40):
    state, done, total = env.reset(), False, 0.0
    while not done:
        if random.random() < max(0.05, 1 - episode / 25):
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = int(q(state).argmax())
        after, reward, done = env.step(action)
        memory.append((state, action, reward, after, done))
        priorities.append(max(priorities, default=1.0))
        state, total, steps = after, total + reward, steps + 1
        if len(memory) < 64 or steps % 2:
            continue
        p = torch.tensor(priorities) ** 0.6
        rows = torch.multinomial(p / p.sum(), 32)
        weights = (len(memory) * p[rows] / p.sum()) ** -0.4
        weights = weights / weights.max()
        s, a, r, n, d = zip(*(memory[i] for i in rows.tolist()))
        s, n, a, r, d = torch.stack(s), torch.stack(n), torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float32)
        value = q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = q(n).argmax(1, keepdim=True)
            goal = r + 0.95 * (1 - d) * target(n).gather(1, best).squeeze(1)
        error = goal - value
        loss = (weights * nn.functional.smooth_l1_loss(value, goal, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10)
        optimizer.step()
        for i, e in zip(rows.tolist(), error.abs().tolist()):
            priorities[i] = e + 1e-3
        if steps % 50 == 0:
            target.load_state_dict(q.state_dict())
    if episode % 10 == 9:
        print(episode, total)
