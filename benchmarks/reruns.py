"""What a re-run costs, apart from the program itself: start of the server, fork and sandbox, against a new interpreter.

    python benchmarks/reruns.py --trials 20
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from traindx.core.trials import Budget, Program, Trace, Trial
from traindx.engine.local import LocalEngine
from traindx.engine.sandbox import MODES

EMPTY = "import torch\n"
SMALL = """
import torch
torch.manual_seed(0)
model, x, y = torch.nn.Linear(16, 4), torch.randn(64, 16), torch.randint(4, (64,))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(1000):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def seconds_of(engine: LocalEngine, trial: Trial, count: int) -> tuple[list[float], list[Trace]]:
    """Wall seconds of one trial after the other, from asking to the end of its processes."""
    spent, traces = [], []
    for _ in range(count):
        began = time.perf_counter()
        traces += engine.run([trial])
        spent.append(time.perf_counter() - began)
    return spent, traces


def row(name: str, spent: list[float], traces: list[Trace]) -> str:
    cpu = statistics.median(trace.cpu_seconds for trace in traces)
    ended = {trace.ended for trace in traces}
    return f"| {name} | {min(spent):.3f} | {statistics.median(spent):.3f} | {cpu:.3f} | {', '.join(sorted(ended))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    count = parser.parse_args().trials
    print(f"torch server on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {sys.version.split()[0]}\n")
    print("| way | fastest, s | median, s | CPU of the child, s | ended |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "empty.py").write_text(EMPTY)
        Path(folder, "small.py").write_text(SMALL)
        empty, small = (Trial(Program(f"{name}.py", cwd=folder), budget=Budget(steps=40)) for name in ("empty", "small"))
        for mode in MODES:
            with LocalEngine(jobs=1, sandbox=mode) as engine:
                print(row(f"{mode}: start of the server and the first trial", *seconds_of(engine, empty, 1)))
                print(row(f"{mode}: a program that only imports torch", *seconds_of(engine, empty, count)))
                print(row(f"{mode}: 40 steps of a small model", *seconds_of(engine, small, count)))
        with LocalEngine(jobs=1, isolate=True) as engine:
            print(row("--isolate: a program that only imports torch", *seconds_of(engine, empty, max(2, count // 10))))
            print(row("--isolate: 40 steps of a small model", *seconds_of(engine, small, max(2, count // 10))))


if __name__ == "__main__":
    main()
