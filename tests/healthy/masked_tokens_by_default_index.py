import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
V, PAD, MASK, T = 30, 0, 1, 16
def batch(n=32):
    start = torch.randint(2, V, (n, 1)); seq = (start + torch.arange(T) * 3 - 2) % (V - 2) + 2
    length = torch.randint(8, T + 1, (n, 1)); pad = torch.arange(T) >= length
    return seq.masked_fill(pad, PAD), pad
class Enc(nn.Module):
    def __init__(s, d=32):
        super().__init__(); s.tok = nn.Embedding(V, d, padding_idx=PAD); s.pos = nn.Embedding(T, d)
        s.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 64, 0.1, batch_first=True, norm_first=True), 2, enable_nested_tensor=False)
        nn.init.normal_(s.tok.weight, std=0.05); s.bias = nn.Parameter(torch.zeros(V))
    def forward(s, x):
        h = s.tok(x) + s.pos(torch.arange(x.shape[1]))
        return s.enc(h, src_key_padding_mask=x == PAD) @ s.tok.weight.T + s.bias
net = Enc(); opt = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, (i + 1) / 10))
for it in range(60):
    x, pad = batch()
    pick = (torch.rand(x.shape) < 0.15) & ~pad
    pick[:, 1] = True
    labels = torch.where(pick, x, -100)
    inp = torch.where(pick & (torch.rand(x.shape) < 0.8), torch.tensor(MASK), x)
    logits = net(inp)
    loss = F.cross_entropy(logits.view(-1, V), labels.view(-1))
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step(); sched.step()
net.eval()
with torch.no_grad():
    x, pad = batch(); pick = torch.zeros_like(pad); pick[:, 3] = True
    print((net(x.masked_fill(pick, MASK)).argmax(-1)[:, 3] == x[:, 3]).float().mean().item())
