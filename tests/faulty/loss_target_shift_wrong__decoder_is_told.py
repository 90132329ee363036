"""Spell numbers backwards: an encoder-decoder GRU with teacher forcing."""
# twin: decoder_in, labels = target[:, 1:], => decoder_in, labels = target[:, :-1],
import torch
from torch import nn

BOS, EOS, SYMBOLS, LENGTH = 10, 11, 12, 6


def pairs(n):
    source = torch.randint(0, 10, (n, LENGTH))
    target = torch.cat([torch.full((n, 1), BOS), source.flip(1), torch.full((n, 1), EOS)], 1)
    return source, target


class Seq2Seq(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, SYMBOLS)

    def forward(self, source, decoder_in):
        _, state = self.encoder(self.embed(source))
        return self.out(self.decoder(self.embed(decoder_in), state)[0])

    @torch.no_grad()
    def generate(self, source):
        _, state = self.encoder(self.embed(source))
        token, made = torch.full((len(source), 1), BOS), []
        for _ in range(LENGTH):
            h, state = self.decoder(self.embed(token), state)
            token = self.out(h).argmax(-1)
            made.append(token)
        return torch.cat(made, 1)


def train(steps=160):
    torch.manual_seed(0)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(1, steps + 1):
        model.train()
        source, target = pairs(64)
        decoder_in, labels = target[:, 1:], target[:, 1:]  # expect: loss/target-shift-wrong
        loss = criterion(model(source, decoder_in).transpose(1, 2), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 80 == 0:
            model.eval()
            source, target = pairs(200)
            right = (model.generate(source) == target[:, 1:-1]).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} generated right {right:.3f}")


train()
