"""Q-learning on a small chain, with replay and a target net that is copied now and then."""
import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
q = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
eye, memory, state = torch.eye(6), [], 0
for step in range(300):
    with torch.no_grad():
        action = random.randrange(2) if random.random() < 0.3 else int(q(eye[state]).argmax())
    after = min(5, state + 1) if action else max(0, state - 1)
    reward = 1.0 if after == 5 else 0.0
    memory.append((state, action, reward, after))
    state = 0 if after == 5 else after
    if len(memory) < 32:
        continue
    s, a, r, n = (torch.tensor(column) for column in zip(*random.sample(memory, 32)))
    goal = r + 0.9 * target(eye[n]).detach().amax(1)
    chosen = q(eye[s]).gather(1, a[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        target.load_state_dict(q.state_dict())
