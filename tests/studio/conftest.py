"""One studio and one browser for all tests of a session: real Chromium, real runs, real trainings."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

for needed in ("plotly", "starlette", "uvicorn", "websockets"):
    pytest.importorskip(needed, reason="the studio is an extra: pip install 'traindx[studio]'")

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


@pytest.fixture(scope="session")
def runs_dir(tmp_path_factory):
    """A real run; and copies of it that somebody has spoilt."""
    work = tmp_path_factory.mktemp("project")
    (work / "train.py").write_text(SCRIPT)
    home = tmp_path_factory.mktemp("runner")
    subprocess.run(command("run", "--no-ask", "--name", "softmax", "train.py"), cwd=work, env=surroundings(home), check=True, capture_output=True)
    folder = work / "runs"
    (real,) = (path for path in folder.iterdir() if path.is_dir())
    real.rename(folder / "2026-01-01-0900-softmax")
    real = folder / "2026-01-01-0900-softmax"
    for name, change in (("2026-01-02-0900-newer", {"schema": 99, "novelty": [1]}), ("2026-01-03-0900-markup", {"script": MARKUP, "name": MARKUP})):
        shutil.copytree(real, folder / name)
        fields = json.loads((real / "run.json").read_text())
        (folder / name / "run.json").write_text(json.dumps(fields | change))
    broken = folder / "2026-01-04-0900-broken"
    broken.mkdir()
    (broken / "run.json").write_text('{"schema": 1, "sta')
    (broken / "metrics.jsonl").write_text('{"step": 1, "loss": null, "nonfinite": {"loss": "nan"}}\nnot json\n{"step": 2, "loss": null, "nonfinite": {"loss": "inf"}}\n')
    return folder


@pytest.fixture(scope="session")
def studio(tmp_path_factory, runs_dir):
    served = serve(tmp_path_factory.mktemp("home"), runs_dir, "--port", "0")
    yield served
    served.stop()
