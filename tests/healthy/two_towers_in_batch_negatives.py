"""CLIP-like: two encoders, a learned temperature, cross-entropy both ways with arange as labels; retrieval in evaluation; a few epochs over the same pairs."""
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
latent = torch.randn(700, 6)
left, right = latent @ torch.randn(6, 20) + 0.1 * torch.randn(700, 20), torch.tanh(latent @ torch.randn(6, 15))
train = DataLoader(TensorDataset(left[:600], right[:600]), 50, shuffle=True, drop_last=True)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 12))
        self.b = nn.Sequential(nn.Linear(15, 48), nn.ReLU(), nn.Linear(48, 12))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, x, y):
        a, b = F.normalize(self.a(x), dim=-1), F.normalize(self.b(y), dim=-1)
        return self.logit_scale.exp().clamp(max=100) * a @ b.T


model = Towers()
optimizer = torch.optim.AdamW([{"params": [p for n, p in model.named_parameters() if n != "logit_scale"]}, {"params": [model.logit_scale], "weight_decay": 0.0}], lr=2e-3)
for epoch in range(8):
    model.train()
    for x, y in train:
        logits = model(x, y)
        labels = torch.arange(len(x))
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (model(left[600:], right[600:]).argmax(1) == torch.arange(100)).float().mean().item())
