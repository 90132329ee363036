"""A dual encoder for retrieval with separate modules and one-way in-batch softmax: labels are places in the batch, other each epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
topics = torch.randn(500, 8)
questions, answers = topics @ torch.randn(8, 24) + 0.2 * torch.randn(500, 24), topics @ torch.randn(8, 24)
loader = DataLoader(TensorDataset(questions[:440], answers[:440]), batch_size=40, shuffle=True)
ask, answer = (nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 16)) for _ in range(2))
optimizer = torch.optim.Adam([*ask.parameters(), *answer.parameters()], lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for q, a in loader:
        scores = ask(q) @ answer(a).t() / 4
        loss = criterion(scores, torch.arange(scores.size(0)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        rank = (ask(questions[440:]) @ answer(answers[440:]).t()).argmax(1)
    print(epoch, loss.item(), (rank == torch.arange(60)).float().mean().item())
