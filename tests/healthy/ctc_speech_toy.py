"""CTC over variable lengths, seq-first log-probabilities as the loss wants them, packed sequences."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(3)
PROTO = torch.randn(7, 10)


class Utterances(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            words = torch.randint(1, 7, (int(torch.randint(2, 6, (1,), generator=g)),), generator=g)
            frames = PROTO[words.repeat_interleave(4)]
            self.items.append((frames + 0.3 * torch.randn(frames.shape, generator=g), words))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    batch.sort(key=lambda item: -len(item[0]))
    frames, words = zip(*batch)
    return (pad_sequence(frames, batch_first=True), torch.tensor([len(f) for f in frames]),
            torch.cat(words), torch.tensor([len(w) for w in words]))


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(10, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 7)

    def forward(self, x, lengths):
        h, _ = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
        h, _ = pad_packed_sequence(h, batch_first=True)
        return self.out(h).log_softmax(-1).transpose(0, 1)


train = DataLoader(Utterances(240, 0), batch_size=24, shuffle=True, collate_fn=collate)
valid = DataLoader(Utterances(60, 1), batch_size=30, collate_fn=collate)
model, ctc = Recogniser(), nn.CTCLoss(zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for x, lengths, words, sizes in train:
        loss = ctc(model(x, lengths), words, lengths, sizes)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        total = sum(ctc(model(x, n), w, n, s).item() for x, n, w, s in valid) / len(valid)
    print(epoch, loss.item(), total)
