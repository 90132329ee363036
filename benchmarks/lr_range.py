"""Does the interval hold the best learning rate of full runs? Beside three known rules on the classic range test.

    python benchmarks/lr_range.py [--write FILE]

Truth: the best final training loss of full runs (600 steps) over a half-decade grid. The classic test raises the rate
exponentially from 1e-7 to 10 in one run of 100 steps; on that curve, smoothed as torch-lr-finder does, three rules read a
rate: the steepest descent (torch-lr-finder, Lightning), the minimum / 10 and the longest valley (fastai), all written anew here.
"""
from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

from traindx.core.text import same
from traindx.core.trials import Budget, Condition, Program
from traindx.engine.local import LocalEngine
from traindx.experiments.bench import Bench

SCRIPT = Path(__file__).parent / "lr_problems" / "problem.py"
PROBLEMS = {
    "Adam, batch 64": [], "Adam, batch 8, 30 % wrong labels": ["--batch", "8", "--wrong", "0.3"],
    "SGD": ["--optimizer", "sgd"], "SGD from tiny weights": ["--optimizer", "sgd", "--tiny"],
    "Adam, inputs unscaled": ["--unscaled"], "random labels": ["--wrong", "1.0"]}
GRID = [10 ** (k / 2) for k in range(-10, 3)]
CLASSIC = [1e-7 * 10 ** (8 * k / 99) for k in range(100)]
REFUSED = "random labels"


def best_of_full_runs(bench: Bench) -> float:
    trials = [bench.plain.under(Condition("fix_lr", {"lr": rate})).for_steps(600) for rate in GRID]
    traces = bench.run(same("full runs"), trials)
    ends = {rate: sum(trace.losses[-50:]) / 50 for rate, trace in zip(GRID, traces) if len(trace.losses) >= 600}
    return min(ends, key=lambda rate: ends[rate] if math.isfinite(ends[rate]) else math.inf)


def classic_curve(bench: Bench) -> list[float]:
    """Loss while the rate rises; smoothed by an exponential average, cut where it has risen fourfold above its best."""
    trial = bench.plain.under(Condition("fix_lr", {"lr": CLASSIC[0], "factor": CLASSIC[1] / CLASSIC[0]})).for_steps(100)
    smooth: list[float] = []
    for loss in bench.one(same("classic"), trial).losses:
        smooth.append(loss if not smooth else 0.05 * loss + 0.95 * smooth[-1])
        if not math.isfinite(loss) or smooth[-1] > 4 * min(smooth):
            break
    return smooth


def steepest(curve: list[float]) -> float:
    slopes = [(curve[k + 1] - curve[k - 1]) / 2 for k in range(1, len(curve) - 1)]
    return CLASSIC[1 + min(range(len(slopes)), key=slopes.__getitem__)]


def minimum_tenth(curve: list[float]) -> float:
    return CLASSIC[min(range(len(curve)), key=curve.__getitem__)] / 10


def valley(curve: list[float]) -> float:
    """Two thirds into the longest run of decreasing values (a longest decreasing subsequence, as fastai takes it)."""
    length, before = [1] * len(curve), [-1] * len(curve)
    for i in range(len(curve)):
        for j in range(i):
            if curve[j] > curve[i] and length[j] + 1 > length[i]:
                length[i], before[i] = length[j] + 1, j
    at = max(range(len(curve)), key=length.__getitem__)
    path = [at]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    path.reverse()
    start, end = path[0], path[-1]
    return CLASSIC[min(start + int((end - start) * 2 / 3), len(CLASSIC) - 1)]


def sweep(arguments: list[str]) -> dict:
    command = [sys.executable, "-m", "traindx", "exam", "--step", "lr", "--json", "-", str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["lr"]


def row(name: str, arguments: list[str]) -> list[str]:
    found = sweep(arguments)
    program = Program(str(SCRIPT), args=tuple(arguments))
    with LocalEngine() as engine:
        bench = Bench(engine, program, Budget(seconds=120))
        best, curve = best_of_full_runs(bench), classic_curve(bench)
    rules = [rule(curve) / best for rule in (steepest, minimum_tenth, valley)]
    if found["interval"] is None:
        said, within = f"refused: {found['refused']}", name == REFUSED
    else:
        low, high = found["interval"]
        said = f"{low:.1e} .. {high:.1e}"
        within = low / 3 <= best <= high * 3 and name != REFUSED
    return [name, f"{best:.1e}", said, "yes" if within else "no", *(f"{ratio:.2g}" for ratio in rules)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    rows = []
    for name, arguments in PROBLEMS.items():
        rows.append(row(name, arguments))
        print(*rows[-1], sep="  ", flush=True)
    heads = ["problem", "best of full runs", "traindx", "holds it (or within 3x)", "steepest / best", "minimum/10 / best", "valley / best"]
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
