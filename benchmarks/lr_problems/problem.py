"""Digits with one knob each: what a learning-rate range test must cope with. An ordinary training script."""
import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="adam", choices=["adam", "sgd"])
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--wrong", type=float, default=0.0, help="share of labels that are wrong")
parser.add_argument("--tiny", action="store_true", help="start from weights a hundred times too small")
parser.add_argument("--unscaled", action="store_true", help="inputs as they are, 0 to 255")
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

torch.manual_seed(options.seed)
data = np.load(Path(__file__).parent.parent.parent / "examples" / "digits.npz")
images = torch.from_numpy(data["images"]).float().flatten(1)
labels = torch.from_numpy(data["labels"]).long()
images = images * (255 / images.max()) if options.unscaled else (images - images.mean()) / images.std()
wrong = torch.rand(len(labels)) < options.wrong
labels[wrong] = torch.randint(0, 10, (int(wrong.sum()),))
loader = DataLoader(TensorDataset(images, labels), batch_size=options.batch, shuffle=True)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
if options.tiny:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.01)
kind = torch.optim.Adam if options.optimizer == "adam" else torch.optim.SGD
optimizer = kind(model.parameters(), lr=options.lr)
criterion = nn.CrossEntropyLoss()

step, losses = 0, []
while step < options.steps:
    for image, label in loader:
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        step += 1
        if step == options.steps:
            break
print(f"final loss {np.mean(losses[-50:]):.5f}")
