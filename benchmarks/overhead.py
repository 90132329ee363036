"""What watching costs: time of the same training with and without traindx, in one process, blocks taken in turn.

    python benchmarks/overhead.py [--pairs 9] [--models 1,10,100] [--json out.json] [--profile]

Each pair times a block of steps watched and a block unwatched (probes put on and taken off between, a short warm-up after
each), in alternating order; the ratio of a size is the median over pairs. A block counts whole, mean over its steps, in
processor time of the process (all threads), so that other programs on the machine disturb little. Blocks are those of a run
that is under way (from step 2400 on); at 1 and 10 ms each holds one step that is looked at closely (there is one in 500) and,
where steps are let alone, the bursts between. ``early`` is the ratio over the first 200 steps of a run, where probes look
closest. Peers are timed the same way where they are installed. The start is the time that ``traindx run`` adds to a script of
three steps.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from torch import nn

TARGETS = {1: 1.30, 10: 1.05, 100: 1.02}  # step in ms -> ratio
START = 1.2  # seconds
UNDER_WAY = 2400  # the step at which watched blocks begin
BLOCKS = {1: (60, 500), 10: (40, 500), 100: (40, 40)}  # steps to warm up, and of a block
Step = Callable[[], None]
Watch = Callable[[nn.Module, torch.optim.Optimizer], contextlib.AbstractContextManager[Callable[[float], None]]]


@dataclass(frozen=True)
class Result:
    """Ratios of one size. ``step_ms`` is the unwatched step as measured."""

    size: int
    step_ms: float
    ratio: float
    spread: tuple[float, float]
    early: float | None
    who: str


def model_of(size: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network whose step takes about ``size`` ms on one core."""
    torch.manual_seed(0)
    if size <= 1:
        return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), \
            torch.randn(32, 32), torch.randint(0, 10, (32,))
    width, length, layers = (64, 32, 2) if size <= 10 else (160, 64, 3)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    net = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Flatten(), nn.Linear(width * length, 10))
    return net, torch.randn(8, length, width), torch.randint(0, 10, (8,))


def stepper(size: int) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[Callable[[float], None]], None]]:
    """An ordinary step: zero_grad, forward, cross_entropy, backward, step, and one number read."""
    model, x, y = model_of(size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(report: Callable[[float], None]) -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        report(loss.item())
    return model, optimizer, step


def nothing(_: float) -> None:
    pass


@contextlib.contextmanager
def traindx(model: nn.Module, optimizer: torch.optim.Optimizer, at: int = UNDER_WAY) -> Iterator[Callable[[float], None]]:
    from traindx.probes.install import install
    from traindx.probes.recorder import Recorder
    with tempfile.TemporaryDirectory() as folder:
        session = install(Recorder(Path(folder)))
        session.optimizers = 1
        session.step = at
        if at > 1:  # an hour into the run, with every budget spent up to now
            session.began -= 3600
            for budget in session.budgets:
                budget.spent = budget.allowance(3600)
        try:
            yield nothing
        finally:
            session.end("finished")
            session.close()


@contextlib.contextmanager
def tensorboard(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[Callable[[float], None]]:
    """The loss and the learning rate of each step, as people log them."""
    from torch.utils.tensorboard import SummaryWriter
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        count = 0

        def report(loss: float) -> None:
            nonlocal count
            count += 1
            writer.add_scalar("loss", loss, count)
            writer.add_scalar("lr", optimizer.param_groups[0]["lr"], count)
        yield report


@contextlib.contextmanager
def torch_audit(model: nn.Module, optimizer: torch.optim.Optimizer, every: int) -> Iterator[Callable[[float], None]]:
    """As its documentation says: ``autopatch`` on the model and the optimizer."""
    from torch_audit import autopatch
    auditor = autopatch(model, optimizer=optimizer, every_n_steps=every, reporters=[])
    try:
        yield nothing
    finally:
        auditor.unpatch()


PEERS: dict[str, tuple[str, Watch]] = {
    "SummaryWriter": ("tensorboard", tensorboard),
    "torch-audit, every step": ("torch_audit", functools.partial(torch_audit, every=1)),
    "torch-audit, every 1000": ("torch_audit", functools.partial(torch_audit, every=1000))}


def timed(step: Callable[[Callable[[float], None]], None], report: Callable[[float], None], steps: int) -> float:
    """Seconds of processor time that a step of a block takes, on the mean."""
    began = time.process_time()
    for _ in range(steps):
        step(report)
    return (time.process_time() - began) / steps


def paired(size: int, watch: Watch, pairs: int) -> tuple[list[float], float]:
    """Ratios watched / unwatched, one a pair, and the unwatched step in seconds."""
    model, optimizer, step = stepper(size)
    warm, steps = BLOCKS[size]
    ratios, plain = [], []

    def without() -> float:
        timed(step, nothing, warm)
        return timed(step, nothing, steps)

    def within() -> float:
        with watch(model, optimizer) as report:
            timed(step, report, warm)
            return timed(step, report, steps)
    for pair in range(pairs):
        a, b = (without(), within()) if pair % 2 else (within(), without())[::-1]
        ratios.append(b / a)
        plain.append(a)
    return ratios, statistics.median(plain)


def early_ratio(size: int, steps: int = 200) -> float:
    """Time of a run's first steps watched, over the same unwatched."""
    def run(watched: bool) -> float:
        model, optimizer, step = stepper(size)
        with traindx(model, optimizer, at=1) if watched else contextlib.nullcontext(nothing) as report:
            return timed(step, report, steps)
    return statistics.median(run(True) / run(False) for _ in range(3))


def start_cost(repeats: int = 5) -> float:
    """Seconds that ``traindx run`` adds to a script of three steps; the median of pairs."""
    source = ("import torch\nm = torch.nn.Linear(4, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\n"
              "for _ in range(3):\n    o.zero_grad(); m(torch.randn(8, 4)).mean().backward(); o.step()\n")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "three.py"
        script.write_text(source)

        # compiled once, as it is where a package was installed
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def seconds(*watched: str) -> float:
            began = time.perf_counter()
            subprocess.run([sys.executable, *watched, str(script)], check=True, capture_output=True, cwd=folder, env=environment)
            return time.perf_counter() - began
        run = ("-m", "traindx", "run")
        seconds(*run)
        return statistics.median(seconds(*run) - seconds() for _ in range(repeats))


def measure(size: int, pairs: int) -> list[Result]:
    results = []
    for who, (package, watch) in {"traindx": ("traindx", traindx), **PEERS}.items():
        if importlib.util.find_spec(package) is None:
            print(f"{who}: not installed, not measured")
            continue
        try:
            ratios, plain = paired(size, watch, pairs)
        except Exception as problem:
            print(f"{who}: not measured ({type(problem).__name__}: {problem})")
            continue
        early = early_ratio(size) if who == "traindx" and size <= 10 else None
        results.append(Result(size, 1000 * plain, statistics.median(ratios), (min(ratios), max(ratios)), early, who))
    return results


def profile(size: int) -> None:
    """Where the time of watched steps goes."""
    import cProfile
    import pstats
    model, optimizer, step = stepper(size)
    with traindx(model, optimizer) as report:
        timed(step, report, 50)
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(300):
            step(report)
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--models", default="1,10,100")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = [int(size) for size in options.models.split(",")]
    if options.profile:
        profile(sizes[0])
        return 0
    results, met = [], True
    for size in sizes:
        for result in measure(size, options.pairs):
            results.append(result)
            low, high = result.spread
            early = f"  first 200 steps {result.early:.2f}" if result.early else ""
            print(f"{result.who:24} {result.step_ms:7.2f} ms a step: {result.ratio:.3f} ({low:.2f} to {high:.2f}){early}")
            met &= result.who != "traindx" or result.ratio <= TARGETS[size]
    start = start_cost()
    print(f"start of traindx run: {start:+.2f} s")
    if options.json:
        options.json.write_text(json.dumps({"results": [asdict(r) for r in results], "start_seconds": start}, indent=1))
    print("targets met" if met and start < START else f"targets missed: {TARGETS}, {START} s")
    return 0 if met and start < START else 1


if __name__ == "__main__":
    sys.exit(main())
