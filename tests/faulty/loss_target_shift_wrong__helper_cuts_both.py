"""Character model of a tiny grammar, GRU."""
import random
import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
words = ["alpha", "beta", "gamma", "delta", "omega", "sigma"]
text = " ".join(random.choice(words) for _ in range(4000))
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
block = 24


class CharGRU(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16)
        self.rnn = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def batch(lo, hi, n=16):
    starts = torch.randint(lo, hi - block - 1, (n,))
    chunk = torch.stack([ids[s:s + block + 1] for s in starts])
    return chunk[:, :-1], chunk[:, :-1]  # expect: loss/target-shift-wrong


net = CharGRU(len(chars))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
cut = int(0.9 * len(ids))
for it in range(1, 41):
    x, y = batch(0, cut)
    loss = nn.functional.cross_entropy(net(x).transpose(1, 2), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(it, loss.item())
with torch.no_grad():
    seq = ids[cut:cut + 400]
    print("next-char accuracy", (net(seq[None, :-1]).argmax(-1)[0] == seq[1:]).float().mean().item())
