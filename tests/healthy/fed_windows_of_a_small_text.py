import torch
from torch import nn

torch.manual_seed(2)
text = torch.randint(0, 12, (1500,))
text[1::2] = (text[::2] * 5 + 1) % 12
parts = {"train": text[:1200], "val": text[1200:]}


def get_batch(split, count=24, width=16):
    source = parts[split]
    starts = torch.randint(len(source) - width, (count,)).tolist()
    return (torch.stack([source[s:s + width] for s in starts]), torch.stack([source[s + 1:s + 1 + width] for s in starts]))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 24)
        self.rnn = nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, 12)

    def forward(self, ids, targets=None):
        logits = self.head(self.rnn(self.embed(ids))[0])
        return logits, None if targets is None else nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in parts:
        out[split] = sum(model(*get_batch(split))[1].item() for _ in range(6)) / 6
    model.train()
    return out


for step in range(160):
    if step % 40 == 0:
        print(step, estimate_loss())
    _, loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
