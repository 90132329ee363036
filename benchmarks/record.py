"""What recording costs and survives: time a step, beside other recorders; kills at random moments; a run of a million steps.

    python benchmarks/record.py [--json out.json] [--only cost,kill,growth,list]

``cost``: microseconds a step for writing six scalars, median over blocks taken in turn. Others are timed on the same loop
where they are installed, each as its users call it, offline. ``kill``: SIGKILL at a random moment, fifty times; every record
must open, with all whole lines. ``growth``: a million steps and 200 modules; bytes a step, cost at the beginning and the
end, and time and memory of ``traindx runs show`` (terminal, page) and of judging and reporting on the record of a run that was
killed, which has no summary to read.
``list``: ten thousand runs.
"""
from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
TARGET_US, TARGET_SHOW_SECONDS, TARGET_SHOW_BYTES, TARGET_BYTES_A_STEP, TARGET_LIST_SECONDS = 30.0, 3.0, 300e6, 250.0, 1.0
BLOCK, BLOCKS = 2000, 15
READ = ("show", "page", "report")  # ways of reading a long record
Write = Callable[[int, dict[str, float]], None]


def scalars(step: int) -> dict[str, float]:
    """Six curves of an ordinary run, with a spike now and then."""
    noise = random.random()
    spike = 50.0 if step % 9973 == 0 else 1.0
    return {"loss": (2.0 / math.sqrt(step) + 0.1 * noise) * spike, "lr": 3e-4, "grad_norm": 0.5 + noise, "activation_std": 1.0 + 0.1 * noise,
            "update_ratio": 1e-3 * (1 + noise), "weight_norm": 10.0 + 1e-5 * step}


# -- cost --------------------------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def traindx(folder: Path) -> Iterator[Write]:
    from traindx.probes.recorder import Recorder
    recorder = Recorder(folder)
    yield recorder.metrics
    recorder.close()


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[Write]:
    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter(str(folder))

    def write(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
    yield write
    writer.close()


@contextlib.contextmanager
def wandb(folder: Path) -> Iterator[Write]:
    import wandb
    run = wandb.init(mode="offline", dir=str(folder), settings=wandb.Settings(silent=True))
    yield lambda step, values: run.log(values, step=step)
    run.finish()


@contextlib.contextmanager
def mlflow(folder: Path) -> Iterator[Write]:
    import mlflow
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    with mlflow.start_run():
        yield lambda step, values: mlflow.log_metrics(values, step=step)


@contextlib.contextmanager
def trackio(folder: Path) -> Iterator[Write]:
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio
    trackio.init(project="bench")
    yield lambda step, values: trackio.log(values)
    trackio.finish()


PEER_BLOCK = BLOCK // 20  # steps of those that take a millisecond or more
WHO = {"traindx": traindx, "tensorboard": tensorboard, "wandb": wandb, "mlflow": mlflow, "trackio": trackio}


def cost() -> dict[str, Any]:
    """Microseconds a step of each that is installed, the median over blocks: CPU time of this process with all its threads (work in
    processes of their own, as W&B has one, is not counted), and wall time."""
    installed = {name: make for name, make in WHO.items() if name == "traindx" or importlib.util.find_spec(name)}
    values = [scalars(step) for step in range(1, BLOCK + 1)]
    cpu: dict[str, list[float]] = {name: [] for name in installed}
    wall: dict[str, list[float]] = {name: [] for name in installed}
    with contextlib.ExitStack() as stack:
        writers = {}
        for name, make in installed.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            writers[name] = stack.enter_context(make(folder))
        for block in range(BLOCKS):
            for name, write in writers.items():
                count = BLOCK if name in ("traindx", "tensorboard") else PEER_BLOCK
                began, used = time.perf_counter(), time.process_time()
                for at in range(count):
                    write(block * BLOCK + at + 1, values[at])
                cpu[name].append((time.process_time() - used) / count * 1e6)
                wall[name].append((time.perf_counter() - began) / count * 1e6)
    return {kind: {name: round(statistics.median(times), 2) for name, times in found.items()} for kind, found in (("cpu", cpu), ("wall", wall))}


# -- kill ---------------------------------------------------------------------------------------------------------------------------

WRITER = """
import sys; from pathlib import Path
from traindx.probes.recorder import Recorder
from traindx.core.observed.record import SeedCall
recorder, step = Recorder(Path(sys.argv[1])), 0
print('ready', flush=True)
while True:
    step += 1
    recorder.metrics(step, {'loss': 1 / step, 'lr': 0.1, 'grad_norm': 2.0})
    if step % 50 == 0: recorder.observe(SeedCall(step=step, function='x' * 5000, value=str(step), site=None))
"""


def kill(times: int = 50) -> dict[str, int]:
    """Every step up to the last must be there: at most one line, the one being written, may be cut."""
    from traindx.core.recording import Recording
    seeded, cut, steps = random.Random(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            where = Path(folder) / str(number)
            where.mkdir()
            child = subprocess.Popen([sys.executable, "-c", WRITER, str(where)], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(seeded.random() * 0.2)
            child.send_signal(signal.SIGKILL)
            child.wait()
            recording = Recording.read(where)
            seen = [step for step, _ in recording.series.get("loss", ())]
            assert seen[:5000] == list(range(1, min(len(seen), 5000) + 1)), "a whole line was lost"
            cut, steps = cut + recording.lost, steps + recording.steps
    return {"times": times, "cut_lines": cut, "steps": steps}


# -- growth --------------------------------------------------------------------------------------------------------------------------

def growth(steps: int = 1_000_000, modules: int = 200) -> dict[str, Any]:
    from traindx.core.observed.program import ModelSeen, Parameter
    from traindx.core.recording import Recording
    from traindx.probes.recorder import Recorder
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "runs" / "2026-01-01-0000-long"
        run.mkdir(parents=True)
        dead = {"schema": 1, "name": "long", "script": "t.py", "argv": [], "status": "running", "pid": 2 ** 22 + 1}
        (run / "run.json").write_text(json.dumps(dead))
        recorder = Recorder(run)
        parameters = tuple(Parameter(i, f"layers.{i}.weight", (64, 64), "float32", True, f"layers.{i}", "Linear") for i in range(modules))
        recorder.observe(ModelSeen(key="model-1", id=1, class_name="Deep", parameters=parameters,
                                   modules=tuple((f"layers.{i}", "Linear") for i in range(modules))))
        blocks = []
        for start in range(0, steps, 50_000):
            values = [scalars(step) for step in range(start + 1, start + 50_001)]
            began = time.process_time()
            for at, value in enumerate(values):
                recorder.metrics(start + at + 1, value)
            blocks.append((time.process_time() - began) / 50_000 * 1e6)
        recorder.close()
        size = sum(file.stat().st_size for file in run.iterdir())
        kept = dict(Recording.read(run).series["loss"])
        spikes = range(9973, steps + 1, 9973)
        shown = {**_measured("show", [sys.executable, "-m", "traindx", "runs", "show", "last"], Path(folder)),
                 **_measured("page", [sys.executable, "-m", "traindx", "runs", "show", "last", "--html", "page.html"], Path(folder)),
                 **_measured("report", [sys.executable, "-c", REPORT, str(run)], Path(folder))}
    return {"steps": steps, "us_first": round(blocks[0], 2), "us_last": round(blocks[-1], 2), "bytes": size,
            "bytes_a_step": round(size / steps, 2), "points": len(kept), "spikes": len(spikes),
            "spikes_kept": sum(step in kept for step in spikes), **shown}


REPORT = """
import sys; from pathlib import Path
from traindx.core.recording import Recording
from traindx.diagnosis import diagnose
from traindx.reporters import html, terminal
report = diagnose(Recording.read(Path(sys.argv[1])))
Path('report.html').write_text(html.render(report, 'en', Path()))
terminal.render(report, 'en')
"""


def _measured(name: str, command: list[str], folder: Path) -> dict[str, float]:
    """Time and peak memory of a command in a process of its own."""
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return {f"{name}_seconds": round(time.perf_counter() - began, 2), f"{name}_cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
            f"{name}_peak_bytes": used.ru_maxrss * 1024}


def listing(count: int = 10_000) -> dict[str, float]:
    """CPU time of ``traindx runs list`` with its index, and of making the index anew."""
    from traindx.runs import index
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        fields = json.dumps({"schema": 1, "status": "finished", "steps": 5, "curves": {}, "best": {}, "findings": []})
        for number in range(count):
            path = runs / f"2026-01-01-0000-r{number:05}"
            path.mkdir()
            (path / "run.json").write_text(fields)
            (path / "notes.md").write_text("best:\n")
        times = []
        for _ in range(2):
            began = time.process_time()
            assert len(index.rows(runs)) == count
            times.append(round(time.process_time() - began, 3))
    return {"runs": count, "rebuilt_seconds": times[0], "indexed_seconds": times[1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="growth,cost,kill,list")
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {"growth": growth, "cost": cost, "kill": kill, "list": listing}
    found = {name: parts[name]() for name in parts if name in options.only.split(",")}
    print(json.dumps(found, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    missed = [name for name, met in _targets(found).items() if not met]
    print(f"targets missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def _targets(found: dict[str, dict[str, Any]]) -> dict[str, bool]:
    met = {}
    if "cost" in found:
        met["microseconds a step"] = found["cost"]["cpu"]["traindx"] <= TARGET_US
    if "growth" in found:
        grown = found["growth"]
        met |= {f"{name} seconds": grown[f"{name}_cpu_seconds"] < TARGET_SHOW_SECONDS for name in READ}
        met |= {f"{name} memory": grown[f"{name}_peak_bytes"] < TARGET_SHOW_BYTES for name in READ}
        met |= {"bytes a step": grown["bytes_a_step"] < TARGET_BYTES_A_STEP, "spikes": grown["spikes_kept"] == grown["spikes"],
                "flat cost": grown["us_last"] <= 1.5 * grown["us_first"]}
    if "list" in found:
        met["list seconds"] = found["list"]["indexed_seconds"] < TARGET_LIST_SECONDS
    return met


if __name__ == "__main__":
    sys.exit(main())
