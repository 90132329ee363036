"""What exam, data and shapes found out goes to the run of the same code, and only there."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from traindx.checklist.evidence import gather
from traindx.checklist.judging import judge
from traindx.cli import data
from traindx.core.observed.record import FilesImported
from traindx.core.recording import to_line
from traindx.runs import beside
from traindx.runs.reading import Run

sys.path.insert(0, str(Path(__file__).parent))
from test_runs import made

NOW = datetime.now().astimezone()


def step(name, verdict="passed", number=0):
    return {"step": number, "name": name, "verdict": verdict, "why": "because"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A script that was changed an hour ago, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    touch(tmp_path, -3600)
    return tmp_path


def touch(folder, seconds):
    then = (NOW + timedelta(seconds=seconds)).timestamp()
    os.utime(folder / "train.py", (then, then))


def a_run(project, name, seconds, **fields):
    started = (NOW + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    path = made(project / "runs", name, started=started, cwd=str(project), **fields)
    (path / "events.jsonl").write_text(to_line(FilesImported(step=1, key="imports", files=(), main=str(project / "train.py"))))
    return path


def keep(project, document, since=NOW, kind="exam"):
    return beside.keep(project / "runs", kind, "train.py", "train", ["--token", "hf_abcdefghijklmnopqrstuvwxyzabcdef"], document, since)


def test_the_newest_run_of_the_same_code_gets_it(project):
    a_run(project, "old", -100)
    new = a_run(project, "new", -50)
    a_run(project, "of-another-script", -10, script="other.py")
    file = keep(project, {"steps": [step("overfit")]})
    assert file == new / "exam.json"
    kept = json.loads(file.read_text())
    assert kept["date"] == NOW.isoformat(timespec="seconds") and "hf_abc" not in file.read_text()


@pytest.mark.parametrize("edited", [-30, -60])
def test_code_that_changed_since_the_run_has_a_folder_of_its_own(project, edited):
    run = a_run(project, "new", -80)
    touch(project, edited)
    file = keep(project, {"steps": [step("overfit")]})
    assert file.parent.name.endswith("-train-exam") and not (run / "exam.json").exists()
    assert not (file.parent / "run.json").exists(), "it is no run"
    assert beside.found(Run(run), project / "runs", "exam") == {}, "it speaks of other code"


def test_a_later_run_finds_it_as_long_as_its_files_have_not_changed(project):
    keep(project, {"steps": [step("overfit")]}, NOW - timedelta(seconds=200))
    run = a_run(project, "later", -50)
    assert judge(gather(Run(run), project / "runs"))[4].state == "ticked"
    touch(project, -100)  # after the exam, before the run
    assert judge(gather(Run(run), project / "runs"))[4].state == "not-done"


def test_exams_of_other_steps_add_up(project):
    run = a_run(project, "new", -50)
    first = {"steps": [step("overfit"), step("lr", "not-checked", 3), step("resume", "failed", 7)], "lr": {"interval": [1, 2]}, "seeds": None}
    keep(project, first)
    keep(project, {"steps": [step("overfit", "not-checked"), step("resume", "passed", 7)], "lr": None, "seeds": {"n": 3}})
    kept = json.loads((run / "exam.json").read_text())
    assert {row["name"]: row["verdict"] for row in kept["steps"]} == {"overfit": "passed", "lr": "not-checked", "resume": "passed"}
    assert kept["lr"] == {"interval": [1, 2]} and kept["seeds"] == {"n": 3} and [row["step"] for row in kept["steps"]] == [0, 3, 7]


def test_a_page_that_is_opened_ticks_that_samples_were_viewed(project):
    """The local server tells when somebody asks for the page."""
    from traindx.cli.run import Target
    from traindx.samples.serve import Review
    run = a_run(project, "new", -50)
    page = project / "page.html"
    kept = partial(data._keep, project / "runs", Target("train.py", None, ()), page, NOW)
    kept(viewed=None)
    assert judge(gather(Run(run), project / "runs"))[2].state == "not-done"
    with Review("<body></body>", page.with_suffix(".marks.json"), opened=lambda: kept(viewed=NOW.isoformat())) as server:
        import threading
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urllib.request.urlopen(server.url).read()
        server.shutdown()
    assert judge(gather(Run(run), project / "runs"))[2].state == "ticked"


def test_an_exam_and_a_checklist_as_a_user_calls_them(tmp_path):
    (tmp_path / "train.py").write_text("""
import torch
torch.manual_seed(0)
x = torch.randn(32, 4)
y = (x.sum(1) > 0).long()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.5)
for step in range(60):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
""")

    def traindx(*words):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, "-m", "traindx", *words], cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=600)
    assert traindx("run", "--no-ask", "train.py").returncode == 0
    done = traindx("exam", "--step", "init", "train.py")
    run, = (tmp_path / "runs").glob("*-train")
    assert (run / "exam.json").is_file() and "traindx checklist reads it" in done.stderr, done.stderr
    rows = json.loads(traindx("checklist", "--json", "-", "--lang", "en").stdout)
    assert rows[10]["state"] == "ticked" and rows[10]["evidence"] == "exam, initialisation and normalisation: passed"
    assert not list((tmp_path / "runs").glob("*-exam"))
