"""Seq2seq with eos distinct from pad, greedy decoding at the end."""

import torch, torch.nn as nn

torch.manual_seed(0)
PAD, BOS, EOS, V, L = 0, 1, 2, 13, 8


def batch(n=48):
    ln = torch.randint(3, L, (n,))
    src = torch.randint(3, V, (n, L))
    pos = torch.arange(L)
    src = src.masked_fill(pos >= ln[:, None], PAD)
    tgt = torch.full((n, L + 2), PAD)
    tgt[:, 0] = BOS
    for i in range(n):
        tgt[i, 1 : ln[i] + 1] = src[i, : ln[i]].flip(0)
        tgt[i, ln[i] + 1] = EOS
    return src, tgt


class S2S(nn.Module):
    def __init__(s, d=32):
        super().__init__()
        s.e = nn.Embedding(V, d, padding_idx=PAD)
        s.p = nn.Parameter(torch.randn(1, L + 2, d) * 0.1)
        s.t = nn.Transformer(d, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        s.o = nn.Linear(d, V)

    def forward(s, a, b):
        m = nn.Transformer.generate_square_subsequent_mask(b.shape[1]).isinf()
        return s.o(
            s.t(
                s.e(a) + s.p[:, : a.shape[1]],
                s.e(b) + s.p[:, : b.shape[1]],
                tgt_mask=m,
                src_key_padding_mask=a == PAD,
                tgt_key_padding_mask=b == PAD,
                memory_key_padding_mask=a == PAD,
            )
        )


net = S2S()
ce = nn.CrossEntropyLoss(ignore_index=PAD)
opt = torch.optim.Adam(net.parameters(), 3e-3)
for it in range(80):
    a, b = batch()
    out = net(a, b[:, :-1])
    loss = ce(out.transpose(1, 2), b[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
a, b = batch(4)
ys = torch.full((4, 1), BOS)
with torch.no_grad():
    for _ in range(L):
        ys = torch.cat([ys, net(a, ys)[:, -1].argmax(-1, keepdim=True)], 1)
print(loss.item(), ys)
