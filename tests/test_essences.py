"""The essences of a public list of silent training faults (TrainCheck, OSDI 2025), each written anew from its description, with its mended twin.

Every program is this one with a few lines exchanged; the fault must be found, the twin must be quiet about it.
"""
from __future__ import annotations

import pytest

from conftest import dump, loud

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
"""
NET = "net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))\n"
OPTIMIZER = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)\n"
LOOP = """
for epoch in range(6):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
EVALUATED = LOOP + """
    net.eval()
    with torch.no_grad():
        print((net(x).argmax(1) == y).float().mean().item())
    net.train()
"""
ATTENTION = """
class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(1, 16), nn.Linear(16, 2)

    def forward(self, x):
        h = self.embed(x.unsqueeze(-1))
        h = nn.functional.scaled_dot_product_attention(h, h, h, dropout_p=RATE)
        return self.head(h.mean(1))

net = Attend()
"""
FREEZES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 2)

    def train(self, mode=True):
        super().train(mode)
        for p in self.body.parameters():
            p.requires_grad = False
        return self

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
net.load_state_dict(Net().state_dict())
"""
SPECTRAL = """
net = nn.Sequential(nn.utils.spectral_norm(nn.Linear(10, 32)), nn.ReLU(), nn.Linear(32, 2))
MODE
with torch.no_grad():
    print(net(x).std().item())
net.train()
"""
SCHEDULED = """
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / PLAN))
""" + LOOP + "        scheduler.step()\n"
RESUMED = """
for part in range(2):
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    if part:
        state = torch.load("state.pt")
        net.load_state_dict(state["net"])
        begun = state["step"]
        RESTORE
    for step in range(30):
        rows = torch.randint(0, 256, (32,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "state.pt")
"""
OWN = """
class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            if p.grad is None:
                LEAVE
            p.add_(p.grad, alpha=-self.param_groups[0]["lr"])

unused = nn.Linear(3, 3)
optimizer = Plain([*unused.parameters(), *net.parameters()], lr=0.1)
"""
WORKERS = """
import numpy as np

class Noisy(TensorDataset):
    rng = None

    def __getitem__(self, i):
        if self.rng is None:
            SEED
        features, label = super().__getitem__(i)
        return features + torch.from_numpy(self.rng.normal(0, 0.3, 10).astype("float32")), label

data = Noisy(x, y)
DRAW
loader = DataLoader(data, 32, shuffle=True, num_workers=2)
""" + NET + OPTIMIZER + """
for epoch in range(2):
    for features, label in loader:
        loss = nn.functional.cross_entropy(net(features), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ESSENCES = {
    "no-zero-grad": ("optim/missing-zero-grad", NET + OPTIMIZER + LOOP, ("        optimizer.zero_grad()\n", ""), None),
    "autocast-escaped": (
        "numeric/autocast-escaped", NET + OPTIMIZER + LOOP.replace("loss = nn.functional.cross_entropy(net(x[rows]), y[rows])", "RUN"),
        ("RUN", "out = net(x[rows])\n        with torch.autocast('cpu', torch.bfloat16):\n            loss = nn.functional.cross_entropy(out, y[rows])"),
        ("RUN", "with torch.autocast('cpu', torch.bfloat16):\n            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])")),
    "dropout-by-kernel-argument": (
        "mode/dropout-always-on", ATTENTION + OPTIMIZER + EVALUATED, ("RATE", "0.2"), ("RATE", "0.2 if self.training else 0.0")),
    "frozen-only-in-train": ("optim/frozen-by-accident", FREEZES + "START\n" + OPTIMIZER + LOOP, ("START", ""), ("START", "net.train()")),
    "frozen-and-given": (
        "optim/frozen-by-accident", NET + "for p in net[0].parameters():\n    p.requires_grad = FLAG\n" + OPTIMIZER + LOOP,
        ("FLAG", "False"), ("FLAG", "True")),
    "spectral-norm-in-eval-first": ("mode/spectral-norm-cold", SPECTRAL + OPTIMIZER + LOOP, ("MODE", "net.eval()"), ("MODE", "net.train()")),
    "planned-steps-miscounted": ("optim/lr-zero", NET + OPTIMIZER + SCHEDULED, ("PLAN", "6"), ("PLAN", "48")),
    "saved-state-incomplete": (
        "repro/resume-incomplete", RESUMED, ("RESTORE", "pass"), ("RESTORE", "optimizer.load_state_dict(state['optimizer'])")),
    "step-does-nothing": ("optim/no-step", NET + OWN + LOOP, ("LEAVE", "return"), ("LEAVE", "continue")),
    "workers-alike": (
        "data/worker-seeds-equal", WORKERS.replace("SEED", "self.rng = np.random.default_rng(torch.initial_seed() % 2 ** 32)"),
        ("DRAW", "data.rng = np.random.default_rng(0)"), ("DRAW", "")),
}


def exchanged(source: str, pair: tuple[str, str] | None) -> str:
    return HEAD + (source.replace(*pair) if pair else source)


@pytest.mark.parametrize("name", ESSENCES)
def test_the_fault_is_found(name, diagnose):
    rule, source, fault, _ = ESSENCES[name]
    report = diagnose(exchanged(source, fault))
    assert rule in [j.rule for j in report.findings if j.explained_by is None], dump(report) + report.metadata["output"]


@pytest.mark.parametrize("name", ESSENCES)
def test_its_mended_twin_is_quiet(name, diagnose):
    rule, source, _, mended = ESSENCES[name]
    report = diagnose(exchanged(source, mended))
    assert rule not in [j.rule for j in report.findings], dump(report)
    assert loud(report) == [], dump(report) + report.metadata["output"]
