"""Accelerate: accumulate() with a tail, clip when gradients are complete, prepared scheduler, gather_for_metrics in evaluation."""
# needs: accelerate
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
x = torch.randn(600, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
train, val = DataLoader(TensorDataset(x[:480], y[:480]), 16, shuffle=True), DataLoader(TensorDataset(x[480:], y[480:]), 48)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6 * 8)
model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)
for epoch in range(6):
    model.train()
    for inputs, labels in train:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    right = total = 0
    for inputs, labels in val:
        with torch.no_grad():
            guess = model(inputs).argmax(1)
        guess, labels = accelerator.gather_for_metrics((guess, labels))
        right += (guess == labels).sum().item()
        total += len(labels)
    accelerator.print(epoch, right / total)
