"""evaluate() switches to eval, but a logging helper inside its loop switches back: only the first batch is right."""
import torch
from torch import nn

torch.manual_seed(2)
tokens = torch.randint(1, 20, (480, 9))
labels = (tokens[:, 0] > 9).long()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.rnn = nn.LSTM(16, 24, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


class Trainer:
    def __init__(self):
        self.net = Tagger()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)

    def probe_gradients(self):
        self.net.train()
        return [p.abs().mean().item() for p in self.net.parameters()][:1]

    def evaluate(self):
        self.net.eval()
        right = 0
        with torch.no_grad():
            for rows in torch.arange(400, 480).split(20):
                right += (self.net(tokens[rows]).argmax(1) == labels[rows]).sum().item()  # expect: mode/eval-missing
                self.probe_gradients()
        return right / 80

    def fit(self):
        for _ in range(4):
            self.net.train()
            for rows in torch.randperm(400).split(40):
                loss = nn.functional.cross_entropy(self.net(tokens[rows]), labels[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(self.evaluate())


Trainer().fit()
