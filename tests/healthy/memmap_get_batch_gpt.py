"""nanoGPT's way: tokens in a memmap, random windows per batch, no epochs, no DataLoader, decay groups, cosine by hand, eval averaged over batches."""
import math
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1337)
np.random.seed(1337)
folder = tempfile.mkdtemp()
text = "the quick brown fox jumps over the lazy dog while seven wise owls watch from old oak trees. " * 60
chars = sorted(set(text))
ids = np.array([chars.index(c) for c in text], dtype=np.uint16)
cut = int(0.9 * len(ids))
ids[:cut].tofile(os.path.join(folder, "train.bin"))
ids[cut:].tofile(os.path.join(folder, "val.bin"))
block, batch = 24, 24


def get_batch(split):
    data = np.memmap(os.path.join(folder, split + ".bin"), dtype=np.uint16, mode="r")
    starts = torch.randint(len(data) - block, (batch,))
    x = torch.stack([torch.from_numpy(data[i:i + block].astype(np.int64)) for i in starts])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block].astype(np.int64)) for i in starts])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False), heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in self.c_attn(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, vocab, dim=48, depth=2):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(vocab, dim), nn.Embedding(block, dim), nn.Dropout(0.1)
        self.h = nn.ModuleList([nn.ModuleDict(dict(ln1=nn.LayerNorm(dim), attn=SelfAttention(dim, 4), ln2=nn.LayerNorm(dim),
                                                   mlp=nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)))) for _ in range(depth)])
        self.ln_f, self.lm_head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1))))
        for layer in self.h:
            x = x + layer.attn(layer.ln1(x))
            x = x + layer.mlp(layer.ln2(x))
        x = self.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


model = GPT(len(chars))
matrices = [p for p in model.parameters() if p.dim() >= 2]
vectors = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))


def lr_at(it, warmup=10, total=60, top=3e-3, low=3e-4):
    if it < warmup:
        return top * it / warmup
    return low + 0.5 * (1 + math.cos(math.pi * (it - warmup) / (total - warmup))) * (top - low)


@torch.no_grad()
def estimate_loss():
    model.eval()
    out = {}
    for split in ("train", "val"):
        losses = torch.zeros(4)
        for k in range(4):
            losses[k] = model(*get_batch(split))[1].item()
        out[split] = losses.mean().item()
    model.train()
    return out


x, y = get_batch("train")
for it in range(60):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(it)
    if it % 30 == 0:
        print(it, estimate_loss())
    for micro in range(2):
        _, loss = model(x, y)
        loss = loss / 2
        x, y = get_batch("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
print(estimate_loss())
