"""word2vec: skip-gram with negative sampling, two embeddings, sparse gradients, SparseAdam; a linear learning rate decay by hand."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
groups = [["king", "queen", "crown", "throne"], ["cat", "dog", "paw", "tail"], ["sun", "rain", "cloud", "wind"]]
vocab = [w for g in groups for w in g]
index = {w: i for i, w in enumerate(vocab)}
sentences = [[index[w] for w in (groups[torch.randint(3, ()).item()][k] for k in torch.randint(0, 4, (6,)))] for _ in range(0)]
for _ in range(300):
    g = groups[torch.randint(3, ()).item()]
    sentences.append([index[g[k]] for k in torch.randint(0, 4, (6,)).tolist()])
pairs = torch.tensor([(s[i], s[j]) for s in sentences for i in range(6) for j in range(max(0, i - 2), min(6, i + 3)) if i != j])


class SkipGram(nn.Module):
    def __init__(self, words, dim=10):
        super().__init__()
        self.centre = nn.Embedding(words, dim, sparse=True)
        self.context = nn.Embedding(words, dim, sparse=True)
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, centre, positive, negative):
        c = self.centre(centre)
        good = F.logsigmoid((c * self.context(positive)).sum(-1))
        bad = F.logsigmoid(-(self.context(negative) @ c.unsqueeze(-1)).squeeze(-1)).sum(-1)
        return -(good + bad).mean()


model = SkipGram(len(vocab))
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.02)
steps, step = 2 * (len(pairs) // 128), 0
for epoch in range(2):
    for rows in torch.randperm(len(pairs)).split(128):
        if len(rows) < 128:
            continue
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * max(0.05, 1 - step / steps)
        centre, positive = pairs[rows].T
        loss = model(centre, positive, torch.randint(0, len(vocab), (len(rows), 5)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(epoch, loss.item())
v = F.normalize(model.centre.weight.detach(), dim=1)
print({w: vocab[(v[index[w]] @ v.T).topk(2).indices[1]] for w in ("king", "cat", "sun")})
