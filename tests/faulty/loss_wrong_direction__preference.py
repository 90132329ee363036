# twin: loss = nn.functional => loss = -nn.functional
import torch
from torch import nn

torch.manual_seed(0)
taste = torch.randn(20)
reward = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(reward.parameters(), lr=1e-3)
for step in range(120):
    one, other = torch.randn(2, 64, 20)
    first = (one @ taste > other @ taste)[:, None]
    chosen, rejected = torch.where(first, one, other), torch.where(first, other, one)
    loss = nn.functional.logsigmoid(reward(chosen) - reward(rejected)).mean()  # expect: loss/wrong-direction
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
