"""A studio in a process of its own, and the small program whose run it shows."""
from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
        probabilities = torch.softmax(model(inputs), dim=1)
        loss = nn.functional.cross_entropy(probabilities, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MARKUP = "<img src=x onerror=alert(1)>.py"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "traindx", *words]


def surroundings(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache"), "LC_ALL": "C.UTF-8",
            "OMP_NUM_THREADS": "1"}


@dataclass
class Served:
    """A studio in a process of its own."""

    process: subprocess.Popen
    url: str
    home: Path
    runs_dir: Path

    @property
    def base(self) -> str:
        return self.url.split("?")[0]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def stop(self, how: int = signal.SIGINT) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(30)


def serve(home: Path, runs_dir: Path, *options: str) -> Served:
    with open(home / "studio.log", "a") as log:
        process = subprocess.Popen(command("studio", "--no-browser", "--runs-dir", str(runs_dir), *options), stdout=subprocess.PIPE, stderr=log,
                                   text=True, env=surroundings(home), cwd=home)
    for line in process.stdout:
        if "http://" in line:
            return Served(process, next(word for word in line.split() if word.startswith("http://")), home, runs_dir)
    raise AssertionError((home / "studio.log").read_text())


def finished(coroutine):
    """Its result, from a thread of its own: a browser driven in this one keeps a loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
