"""``traindx new``: the starter trains, its own tests hold, and traindx has nothing against it."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from traindx import cli
from traindx.starter import KINDS


def python(folder, *words):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_trains_without_findings(kind, tmp_path, capsys):
    folder = tmp_path / "start"
    assert cli.main(["new", "--kind", kind, "--lang", "en", str(folder)]) == 0
    assert "is ready" in capsys.readouterr().out
    done = python(folder, "-m", "traindx", "run", "--json", "r.json", "--lang", "en", "train.py", "--epochs", "5")
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "r.json").read_text())
    assert [(finding["rule"], finding["title"]) for finding in report["findings"] if finding["level"] != "note"] == []
    losses = [float(line.split("validation loss ")[1].split(",")[0]) for line in done.stdout.splitlines()]
    assert losses[-1] < losses[0] and (folder / "out" / "best.pt").exists() and (folder / "out" / "last.pt").exists()


def test_the_starters_own_tests_hold(tmp_path):
    """One kind here; each has the same tests."""
    folder = tmp_path / "start"
    cli.main(["new", "--kind", "text", str(folder)])
    done = python(folder, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", "resumed or share or shapes or overfit")
    assert done.returncode == 0, done.stdout


def test_a_starter_is_repeated_and_resumed_to_the_last_bit(tmp_path):
    """One kind here, with dropout nowhere and an order by seed; the exam's result is then found by the checklist."""
    folder = tmp_path / "start"
    cli.main(["new", "--kind", "tabular", "--lang", "en", str(folder)])
    assert python(folder, "-m", "traindx", "run", "--no-ask", "train.py", "--epochs", "3").returncode == 0
    again = python(folder, "-m", "traindx", "runs", "reproduce", "--lang", "en", "last")
    assert again.returncode == 0 and "Identical" in again.stdout, again.stdout + again.stderr
    done = python(folder, "-m", "traindx", "exam", "--step", "resume", "--json", "e.json", "train.py", "--epochs", "3")
    step, = json.loads((folder / "e.json").read_text())["steps"]
    assert step["verdict"] == "passed" and "to the last bit" in step["why"], done.stderr
    run, = (folder / "runs").glob("*-train")  # not its repetition
    rows = json.loads(python(folder, "-m", "traindx", "checklist", "--no-ask", "--json", "-", run.name).stdout)
    assert rows[15]["state"] == "ticked"


def test_nothing_is_written_over(tmp_path, capsys):
    (tmp_path / "train.py").write_text("mine")
    assert cli.main(["new", "--lang", "en", str(tmp_path)]) == 2 and "not empty" in capsys.readouterr().err
    assert (tmp_path / "train.py").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
    assert cli.main(["new", "--lang", "en", str(tmp_path / "train.py" / "x")]) == 2
    assert cli.main(["new", "--kind", "nonsense", "x"]) == 2


def test_the_lock_is_what_is_installed(tmp_path):
    cli.main(["new", "--lang", "zh", str(tmp_path / "start")])
    lock = (tmp_path / "start" / "requirements.txt").read_text()
    assert "torch==" in lock and "+" not in lock and "# start" in (tmp_path / "start" / "README.md").read_text()
