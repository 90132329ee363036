"""torchmetrics inside a loop: accuracy, F1 and a confusion matrix updated by batch, computed and reset by epoch; the last batch is smaller."""
# needs: torchmetrics
import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
train, val = DataLoader(TensorDataset(x[:500], y[:500]), 32, shuffle=True), DataLoader(TensorDataset(x[500:], y[500:]), 64)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
metrics = torchmetrics.MetricCollection({"acc": torchmetrics.Accuracy(task="multiclass", num_classes=3),
                                         "f1": torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro")})
running, confusion = torchmetrics.MeanMetric(), torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for inputs, labels in train:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.update(loss.detach(), len(labels))
    model.eval()
    with torch.no_grad():
        for inputs, labels in val:
            logits = model(inputs)
            metrics.update(logits, labels)
            confusion.update(logits.argmax(1), labels)
    print(f"epoch {epoch}: {running.compute():.4f}", {k: round(v.item(), 3) for k, v in metrics.compute().items()})
    running.reset()
    metrics.reset()
print(confusion.compute())
