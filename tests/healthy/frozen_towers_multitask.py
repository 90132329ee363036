"""Two pretrained towers are frozen and kept in eval; a fusion layer and three task heads are trained, tasks taking turns."""
import torch
from torch import nn

torch.manual_seed(5)


class Tower(nn.Module):
    def __init__(self, inputs, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width))

    def forward(self, x):
        return self.body(x)


class MultiTask(nn.Module):
    def __init__(self, text, audio):
        super().__init__()
        self.text, self.audio = text, audio
        for tower in (text, audio):
            tower.requires_grad_(False)
        self.fuse = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.heads = nn.ModuleDict({"topic": nn.Linear(32, 5), "mood": nn.Linear(32, 1), "urgent": nn.Linear(32, 1)})

    def train(self, mode=True):
        super().train(mode)
        self.text.eval()
        self.audio.eval()
        return self

    def forward(self, text, audio, task):
        with torch.no_grad():
            both = torch.cat([self.text(text), self.audio(audio)], 1)
        return self.heads[task](self.fuse(both)).squeeze(-1)


def pretrain(tower, x):
    head = nn.Linear(32, x.size(1))
    optimizer = torch.optim.Adam([*tower.parameters(), *head.parameters()], lr=3e-3)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.mse_loss(head(tower(x[rows])), x[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return tower


text, audio = torch.randn(512, 20), torch.randn(512, 10)
topic = (text @ torch.randn(20, 5)).argmax(1)
mood = audio[:, 0] - 0.5 * text[:, 1] + 0.1 * torch.randn(512)
urgent = (text[:, 2] + audio[:, 3] > 0).float()
model = MultiTask(pretrain(Tower(20), text), pretrain(Tower(10), audio))
losses = {"topic": nn.CrossEntropyLoss(), "mood": nn.SmoothL1Loss(), "urgent": nn.BCEWithLogitsLoss()}
targets = {"topic": topic, "mood": mood, "urgent": urgent}
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=3e-3)
model.train()
for step in range(180):
    task = ("topic", "mood", "urgent")[step % 3]
    rows = torch.randint(0, 400, (48,))
    loss = losses[task](model(text[rows], audio[rows], task), targets[task][rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print("topic", (model(text[400:], audio[400:], "topic").argmax(1) == topic[400:]).float().mean().item())
