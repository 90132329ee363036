"""One studio and one browser for all tests of a session: real Chromium, real runs, real trainings."""
from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from studio.serving import MARKUP, SCRIPT, command, serve, surroundings

for needed in ("plotly", "starlette", "uvicorn", "websockets"):
    pytest.importorskip(needed, reason="the studio is an extra: pip install 'traindx[studio]'")


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
