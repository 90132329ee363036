"""A training program of many kinds, for ``benchmarks/memory.py``: plain PyTorch, as users write it."""
import argparse
import contextlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="gpt")
parser.add_argument("--optimizer", default="adamw")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--autocast", action="store_true")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--layers", type=int, default=3)
parser.add_argument("--length", type=int, default=96)
parser.add_argument("--vocab", type=int, default=1000)
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads, causal, fused=True):
        super().__init__()
        self.heads, self.causal, self.fused = heads, causal, fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = (q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5
            if self.causal:
                scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, causal, fused=True):
        super().__init__()
        self.tokens, self.places = nn.Embedding(args.vocab, args.width), nn.Embedding(args.length, args.width)
        self.blocks = nn.ModuleList(Block(args.width, 4, causal, fused) for _ in range(args.layers))
        self.norm, self.head = nn.LayerNorm(args.width), nn.Linear(args.width, args.vocab, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if args.checkpoint else block(x)
        return self.head(self.norm(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, args.width, 8, stride=8)
        self.places = nn.Parameter(torch.zeros(1, 64, args.width))
        self.blocks = nn.ModuleList(Block(args.width, 4, False) for _ in range(args.layers))
        self.head = nn.Linear(args.width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if args.checkpoint else block(x)
        return self.head(x.mean(1))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab, args.width)
        self.lstm = nn.LSTM(args.width, args.width, num_layers=2, batch_first=True)
        self.head = nn.Linear(args.width, args.vocab)

    def forward(self, tokens):
        return self.head(self.lstm(self.tokens(tokens))[0])


def stage(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU())


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(stage(3, 32), nn.MaxPool2d(2), stage(32, 64), nn.MaxPool2d(2), stage(64, 128), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.stages(x).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = stage(3, 16), stage(16, 32), stage(32, 64)
        self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.join2, self.join1, self.head = stage(64, 32), stage(32, 16), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([b, self.up2(c)], 1))
        return self.head(self.join1(torch.cat([a, self.up1(b)], 1)))


def build():
    if args.model in ("gpt", "bert", "gpt-unfused"):
        model = Transformer(causal=args.model != "bert", fused=args.model != "gpt-unfused")
        return model, lambda n: torch.randint(0, args.vocab, (n, args.length)), lambda n: torch.randint(0, args.vocab, (n, args.length))
    if args.model == "lstm":
        return LSTM(), lambda n: torch.randint(0, args.vocab, (n, args.length)), lambda n: torch.randint(0, args.vocab, (n, args.length))
    if args.model == "mlp":
        model = nn.Sequential(nn.Linear(784, 4 * args.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4 * args.width, 4 * args.width), nn.ReLU(),
                              nn.Linear(4 * args.width, 10))
        return model, lambda n: torch.randn(n, 784), lambda n: torch.randint(0, 10, (n,))
    images = lambda n: torch.randn(n, 3, 64, 64)  # noqa: E731
    if args.model == "unet":
        return UNet(), images, lambda n: torch.randint(0, 4, (n, 64, 64))
    return (ViT() if args.model == "vit" else CNN()), images, lambda n: torch.randint(0, 10, (n,))


torch.manual_seed(0)
model, inputs, targets = build()
optimizers = {"adamw": torch.optim.AdamW, "adamw-foreach": lambda p: torch.optim.AdamW(p, foreach=True),
              "adamw-fused": lambda p: torch.optim.AdamW(p, fused=True), "sgd": lambda p: torch.optim.SGD(p, 0.01),
              "momentum": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)}
optimizer = optimizers[args.optimizer](model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    for _ in range(args.accumulate):
        x, y = inputs(args.batch), targets(args.batch)
        with torch.autocast("cpu", dtype=torch.bfloat16) if args.autocast else contextlib.nullcontext():
            out = model(x)
            classes = 1 if args.model in ("cnn", "vit", "mlp", "unet") else 2
            loss = F.cross_entropy(out, y) if classes == 1 else F.cross_entropy(out.flatten(0, 1), y.flatten())
        (loss / args.accumulate).backward()
    optimizer.step()
