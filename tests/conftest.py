"""Tools for tests: a script is watched in a forked child of the test process, where torch is already imported."""
from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from torch.overrides import _len_torch_function_stack

torch.set_num_threads(1)
from traindx.core.judge import judge
from traindx.core.ranks import judge_ranks
from traindx.core.recording import Recording
from traindx.core.rules import all_rules

ROOT = Path(__file__).parent.parent


RANKS = re.compile(r"^# run: torchrun --nproc-per-node (\d+)", re.MULTILINE)  # the first line of a program of several ranks
COMPILES = ("torch.jit", ".compile(", "torch.export", "symbolic_trace", "threading.Thread(")  # not safe in a fork of a process that did so


def watch_in_child(script: Path, folder: Path, seconds: float = 120, args: tuple[str, ...] = (), max_steps: int | None = None,
                   fresh: bool = False, looks: dict | None = None) -> int:
    """Runs a script under the probes in a fork of this process (``fresh``: in a new one); the recording goes to ``folder``. Its exit status."""
    if fresh or any(word in script.read_text(encoding="utf-8") for word in COMPILES):
        return _in_fresh_python(script, folder, seconds, args, max_steps, looks)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _run_script(script, folder, args, max_steps, looks)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _in_fresh_python(script, folder, seconds, args, max_steps, looks)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"{script} ran longer than {seconds} s")


def _in_fresh_python(script: Path, folder: Path, seconds: float, args: tuple[str, ...], max_steps: int | None,
                     looks: dict | None = None) -> int:
    """A fork of a process that has compiled or run threads before may crash by itself: a fresh interpreter decides."""
    for name in ("events.jsonl", "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import conftest as c; from pathlib import Path\n" \
           f"sys.exit(c._run_script(Path({str(script)!r}), Path({str(folder)!r}), {args!r}, {max_steps!r}, {looks!r}))"
    return subprocess.run([sys.executable, "-c", code], timeout=seconds).returncode


def _run_script(script: Path, folder: Path, args: tuple[str, ...], max_steps: int | None, looks: dict | None = None, watched: bool = True) -> int:
    from traindx.probes import sites
    from traindx.probes.install import install
    from traindx.probes.recorder import Recorder
    quiet = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = [str(script), *args]
    sys.path.insert(0, str(script.parent))
    os.chdir(script.parent)
    sites.main_script(str(script))
    if not watched:
        runpy.run_path(str(script), run_name="__main__")
        return 0
    session = install(Recorder(folder), max_steps, looks)
    how, error, status, ended_by = "finished", None, 0, None
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0
        how = "max-steps" if session.stopped else "finished"
    except BaseException as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__)  # as the interpreter would
        how, error, status, ended_by = "raised", f"{type(problem).__name__}: {problem}", 1, problem
    session.end(how, error, ended_by)
    return status


def watch_ranks(script: Path, folder: Path, count: int, seconds: float = 150, args: tuple[str, ...] = (), watched: bool = True) -> Recording:
    """Runs a script on ``count`` ranks, each in a fork of its own, as torchrun would; the recording of rank 0, which holds those of all.

    A fork of a process that has run threads before may hang by itself: where one does, fresh interpreters decide.
    """
    statuses = _ranks(_rank_in_fork, script, folder, args, count, watched, seconds)
    if signal.SIGKILL in statuses.values():
        shutil.rmtree(folder)
        folder.mkdir()
        statuses = _ranks(_rank_in_fresh_python, script, folder, args, count, watched, 600)
    recordings = {rank: Recording.read(folder / str(rank)) for rank in range(count)}
    recordings[0].ranks = recordings
    recordings[0].status = max(statuses.values())
    (folder / "output.txt").write_text("".join((folder / str(rank) / "output.txt").read_text() for rank in range(count)))
    return recordings[0]


def _ranks(start, script: Path, folder: Path, args: tuple[str, ...], count: int, watched: bool, seconds: float) -> dict[int, int]:
    children = {}
    for rank in range(count):
        (folder / str(rank)).mkdir()
        children[start(script, folder, args, rank, count, watched)] = rank
    return _statuses(children, time.monotonic() + seconds)


def _rank_in_fork(*call) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _rank(*call)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return child


def _rank_in_fresh_python(script: Path, folder: Path, *call) -> int:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import conftest as c; from pathlib import Path\n" \
           f"sys.exit(c._rank(Path({str(script)!r}), Path({str(folder)!r}), *{call!r}))"
    return os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])


def _rank(script: Path, folder: Path, args: tuple[str, ...], rank: int, count: int, watched: bool) -> int:
    store, port = _met(folder / "port", rank)
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": "True", "RANK": str(rank),
                       "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)})
    status = _run_script(script, folder / str(rank), args, None, watched=watched)
    del store
    return status


def _met(file: Path, rank: int) -> tuple[object, str]:
    """Rank 0 holds the store, on a port that the system picks; the others are told by a file."""
    if rank == 0:
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        file.with_suffix(".new").write_text(str(store.port))
        file.with_suffix(".new").rename(file)
        return store, str(store.port)
    while not file.exists():
        time.sleep(0.005)
    return None, file.read_text()


def _statuses(children: dict[int, int], deadline: float) -> dict[int, int]:
    """Exit statuses by rank; those that are not over at the deadline are killed."""
    left, statuses = dict(children), {}
    while left:
        for child in list(left):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                statuses[left.pop(child)] = abs(os.waitstatus_to_exitcode(status))
        if time.monotonic() > deadline:
            for child in left:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return statuses


@pytest.fixture
def observe(tmp_path):
    """observe(source or path) -> Recording of that script; of rank 0 where it is one of several ranks."""
    def run(source, **options) -> Recording:
        script = source if isinstance(source, Path) else tmp_path / "script.py"
        if not isinstance(source, Path):
            script.write_text(source)
        folder = tmp_path / f"recording-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        if (ranks := RANKS.search(script.read_text(encoding="utf-8"))) is not None:
            recording = watch_ranks(script, folder, int(ranks[1]), **options)
            recording.output = (folder / "output.txt").read_text()
            return recording
        status = watch_in_child(script, folder, **options)
        recording = Recording.read(folder)
        recording.status = status
        recording.output = (folder / "output.txt").read_text()
        return recording
    return run


@pytest.fixture
def diagnose(observe):
    """diagnose(source or path) -> Report of that script."""
    def run(source, **options):
        recording = observe(source, **options)
        report = judge_ranks(recording, all_rules().values()) if recording.ranks else judge(recording)
        report.metadata["output"] = recording.output
        return report
    return run


def loud(report) -> list[str]:
    """Names of the findings at level error or warning, in order."""
    return [j.rule for j in report.findings if j.level in ("error", "warning")]


def dump(report) -> str:
    return json.dumps([(j.rule, j.level, str(j.finding.where), j.finding.cause.en) for j in report.findings], indent=1)


@pytest.fixture(autouse=True)
def no_mode_left_on():
    """A session that is over has taken its mode off torch's stack."""
    yield
    assert _len_torch_function_stack() == 0
