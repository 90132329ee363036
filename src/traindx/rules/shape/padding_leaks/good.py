import torch
from torch import nn

PAD, VOCAB, CLASSES = 0, 20, 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16, padding_idx=PAD)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, tokens):
        h = self.embed(tokens)
        h = h + self.attend(h, h, h, key_padding_mask=tokens == PAD, need_weights=False)[0]
        real = (tokens != PAD).unsqueeze(-1)
        return self.head((h * real).sum(1) / real.sum(1))


def batch(count):
    longest = int(torch.randint(10, 15, ()))
    lengths = torch.randint(3, longest + 1, (count, 1))
    lengths[0] = longest
    tokens = torch.randint(1, VOCAB, (count, longest))
    tokens[:, 0] = torch.randint(1, 1 + CLASSES, (count,))
    return tokens.masked_fill(torch.arange(longest) >= lengths, PAD), tokens[:, 0] - 1


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(60):
    tokens, labels = batch(32)
    loss = nn.functional.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
