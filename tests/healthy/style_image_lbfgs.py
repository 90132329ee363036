"""The optimised thing is the input image; the network is frozen, and one step evaluates the closure many times."""
import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()).eval()
for p in features.parameters():
    p.requires_grad_(False)
content, style = torch.rand(1, 3, 24, 24), torch.rand(1, 3, 24, 24)


def gram(x):
    f = x.flatten(2)[0]
    return f @ f.t() / f.numel()


goal, look = features(content), gram(features(style))
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image], lr=0.5, max_iter=5)
for step in range(12):
    def closure():
        optimizer.zero_grad()
        out = features(image)
        loss = (out - goal).pow(2).mean() + 50 * (gram(out) - look).pow(2).sum()
        loss.backward()
        return loss
    loss = optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
print(loss.item())
