"""On a real local Ray cluster of two workers: the same results as here, also when one of them is killed on the way."""
from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from traindx.core.trials import Budget, Program, Trial
from traindx.engine import ray as on_ray
from traindx.engine.local import Interrupted, LocalEngine
from traindx.engine.ray import RayEngine
from traindx.errors import UsageError

HERE = Path(__file__).parent
PERFORMER = "light_performer:perform"
STEPS = """
import sys, time
for number in range(1000):
    step()
    time.sleep(float(sys.argv[1]))
"""


def test_without_ray_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"traindx\[ray\]"):
        RayEngine()


def test_a_trial_moves_with_its_project():
    trial = Trial(Program("/a/proj/src/train.py", args=("--data=/a/proj/d.npz", "/b/x"), cwd="/a/proj/src"))
    moved = on_ray.moved(trial, "/a/proj", "/tmp/pkg").program
    assert (moved.script, moved.cwd, moved.args) == ("train.py", "/tmp/pkg/src", ("--data=/tmp/pkg/d.npz", "/b/x"))


def test_the_working_directory_must_be_shipped(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(UsageError, match="must lie in the project"):
        on_ray.root_of(Program(str(tmp_path / "a" / "train.py"), cwd=str(tmp_path / "b")))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(STEPS)
    return folder


@pytest.fixture(scope="module")
def engine():
    """On a new cluster of this machine: head, scheduler and one worker process per core."""
    pytest.importorskip("ray")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), before]))
    os.environ["RAY_raylet_start_wait_time_s"] = "150"  # noqa: SIM112  Ray reads it so
    with RayEngine(address="local", performer=PERFORMER) as engine:
        yield engine
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def trial(project):
    def make(*args, **budget):
        return Trial(Program("train.py", args=args, cwd=str(project)), budget=Budget(**{"steps": 5, "seconds": 60, **budget}))
    return make


def workers() -> list[int]:
    """Ray's processes that perform a task now."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if b"ray::work" in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
    return found


def test_the_same_as_here(engine, trial):
    trials = [trial("0", steps=steps) for steps in (3, 7)] + [trial("x")]
    done = []
    there = engine.run(trials, lambda index, trace: done.append(index))
    with LocalEngine(performer=PERFORMER, preload=()) as local:
        here = local.run(trials)
    assert [(t.ended, len(t.steps), t.error, t.sandbox) for t in there] == [(t.ended, len(t.steps), t.error, t.sandbox) for t in here]
    assert sorted(done) == [0, 1, 2] and there[2].error == "ValueError: could not convert string to float: 'x' (train.py:5)"
    assert str(Path(trials[0].program.cwd) / "train.py") in there[2].output or "train.py" in there[2].output


def test_a_worker_that_is_killed_is_replaced_and_no_trial_is_lost(engine, trial):
    killed = []

    def kill_one(index, trace):
        if not killed:
            deadline = time.monotonic() + 20
            while not workers() and time.monotonic() < deadline:
                time.sleep(0.05)
            killed.extend(workers()[:1])
            for process in killed:
                os.kill(process, signal.SIGKILL)
    trials = [trial("0"), *[trial("0.3", steps=6 + extra) for extra in range(4)]]
    traces = engine.run(trials, kill_one)
    assert killed and [(trace.ended, len(trace.steps)) for trace in traces] == [("steps", trial.budget.steps) for trial in trials]


def test_ctrl_c_keeps_what_is_done_and_leaves_nothing_running(engine, trial):
    def interrupt(index, trace):
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(Interrupted) as stop:
        engine.run([trial("0"), trial("5", steps=100), trial("5", steps=100)], interrupt)
    assert list(stop.value.traces) == [0]
    deadline = time.monotonic() + 15
    while workers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not workers()
    assert engine.run([trial("0")])[0].ended == "steps"


def test_one_engine_serves_one_project(engine, tmp_path):
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UsageError, match="one project"):
        engine.run([Trial(Program("train.py", cwd=str(tmp_path)))])


def test_no_cluster_is_said_at_once(tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UsageError, match=r"no Ray cluster at 127\.0\.0\.1:9: "):
        RayEngine("127.0.0.1:9").run([Trial(Program("train.py", cwd=str(tmp_path)))])
