"""One sentence at a time, time first: the number of words is not a batch. A bag with attention over its own items."""
import torch
from torch import nn

torch.manual_seed(0)
sentences = [torch.randint(0, 20, (int(n),)) for n in torch.randint(5, 9, (60,))]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.tag = nn.Embedding(20, 12), nn.LSTM(12, 16), nn.Linear(16, 3)
        self.score, self.bag = nn.Linear(12, 1), nn.Linear(12, 2)

    def forward(self, words):
        e = self.embed(words)
        states, _ = self.lstm(e.view(len(words), 1, -1))
        weights = torch.softmax(self.score(e), dim=0)
        return self.tag(states.view(len(words), -1)), self.bag((weights * e).sum(0, keepdim=True))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(2):
    for i in torch.randperm(60).tolist():
        words = sentences[i]
        tags, bag = model(words)
        loss = nn.functional.cross_entropy(tags, words % 3) + nn.functional.cross_entropy(bag, (words[:1] > 9).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
