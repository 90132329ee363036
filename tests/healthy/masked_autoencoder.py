"""A masked autoencoder on patches: most are dropped before the encoder, mask tokens fill in, the loss counts masked patches only."""
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(1)


def make(n):
    grid = torch.linspace(-1, 1, 16)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle, freq, phase = torch.rand(n, 1, 1) * 3.14, 2 + 4 * torch.rand(n, 1, 1), torch.rand(n, 1, 1) * 6.28
    return torch.sin(freq * (xx * angle.cos() + yy * angle.sin()) + phase).unsqueeze(1)


def patchify(images, p=4):
    n, c, h, w = images.shape
    return images.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(n, -1, c * p * p)


class MAE(nn.Module):
    def __init__(self, patches=16, dim=48, patch=16, ratio=0.625):
        super().__init__()
        self.ratio = ratio
        self.embed = nn.Linear(patch, dim)
        self.pos = nn.Parameter(torch.randn(1, patches, dim) * 0.02)
        layer = dict(nhead=4, dim_feedforward=96, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, **layer), 2, enable_nested_tensor=False)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.decoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, **layer), 1, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, patch)

    def forward(self, images):
        target = patchify(images)
        tokens = self.embed(target) + self.pos
        n, length, dim = tokens.shape
        keep = int(length * (1 - self.ratio))
        shuffle = torch.rand(n, length).argsort(1)
        restore = shuffle.argsort(1)
        kept = torch.gather(tokens, 1, shuffle[:, :keep, None].expand(-1, -1, dim))
        encoded = self.encoder(kept)
        filled = torch.cat([encoded, self.mask_token.expand(n, length - keep, -1)], 1)
        filled = torch.gather(filled, 1, restore[:, :, None].expand(-1, -1, dim)) + self.pos
        prediction = self.head(self.norm(self.decoder(filled)))
        mask = torch.ones(n, length)
        mask[:, :keep] = 0
        mask = torch.gather(mask, 1, restore)
        loss = ((prediction - target) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum()


model = MAE()
decay = [p for p in model.parameters() if p.dim() > 1 and p is not model.pos]
rest = [p for p in model.parameters() if p.dim() <= 1 or p is model.pos]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=2e-3, betas=(0.9, 0.95))
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 20))
loader = DataLoader(make(640), 64, shuffle=True)
for epoch in range(10):
    total = 0.0
    for images in loader:
        loss = model(images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        total += loss.item()
    print(epoch, total / len(loader))
