"""Stopped and resumed: model, optimizer, scheduler and generator states are saved and loaded; the loop goes on at the right epoch."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

path = os.path.join(tempfile.mkdtemp(), "last.pt")
g = torch.Generator().manual_seed(0)
x = torch.randn(640, 10, generator=g)
y = (x @ torch.randn(10, 4, generator=g)).argmax(1)


def main(epochs, resume=None):
    torch.manual_seed(1)
    loader = DataLoader(TensorDataset(x, y), 64, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [4, 6], gamma=0.3)
    start = 0
    if resume and os.path.exists(resume):
        state = torch.load(resume, weights_only=False)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["optimizer"])
        sched.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            opt.step()
        sched.step()
        torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(), "scheduler": sched.state_dict(),
                    "rng": torch.get_rng_state(), "epoch": epoch}, path)
        print(epoch, loss.item())


main(4)
main(8, resume=path)
