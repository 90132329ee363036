"""Traced peak against the allocator's, on many kinds of training, beside what other estimators say of the same model.

    python benchmarks/memory.py [--only WORD] [--large] [--write]

The truth is the peak of all allocations on the CPU in two real steps of ``memory_program.py`` (torch.profiler's record). Peers:
accelerate's estimate for training in fp32 (four times the weights), and torch.distributed._tools.MemTracker around one real step
(it refuses accumulation).
``--large`` traces a model of 7e9 parameters. ``--write`` writes ``memory.md``.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from traindx.core.trials import Program
from traindx.estimate.tracing import Tracer

HERE = Path(__file__).parent
PROGRAM = HERE / "memory_program.py"
CONFIGURATIONS = [
    "gpt", "gpt --optimizer sgd", "gpt --accumulate 2", "gpt --checkpoint", "gpt --autocast", "gpt --optimizer adamw-foreach --vocab 200",
    "gpt --optimizer adamw-fused --vocab 200", "gpt-unfused", "bert", "bert --optimizer momentum", "bert --accumulate 2 --checkpoint",
    "bert --autocast", "lstm", "lstm --optimizer sgd --batch 16", "mlp", "mlp --batch 2048 --optimizer sgd", "mlp --accumulate 2 --batch 512",
    "mlp --autocast --batch 1024", "vit", "vit --optimizer sgd --accumulate 2", "vit --checkpoint", "vit --autocast",
    "cnn --batch 32", "cnn --batch 32 --optimizer sgd", "cnn --batch 16 --autocast", "unet", "unet --optimizer sgd --accumulate 2",
    "unet --batch 2"]
BOUND = {"cnn": 0.06, "unet": 0.06}
LARGE = "gpt --width 4096 --layers 33 --length 2048 --vocab 50000 --batch 1"


@dataclass
class Row:
    words: str
    traced: int
    measured: int
    seconds: float
    source: str
    accelerate: float
    mem_tracker: float

    @property
    def error(self) -> float:
        return self.traced / self.measured - 1

    @property
    def bound(self) -> float:
        return BOUND.get(self.words.split()[0], 0.01)


def arguments(words: str) -> tuple[str, ...]:
    return ("--model", *words.split())


def program_of(words: str) -> Program:
    return Program(str(PROGRAM), args=arguments(words), cwd=str(HERE))


def row_of(words: str, tracer: Tracer) -> Row:
    tracer.program = program_of(words)
    began = time.monotonic()
    traced, source = tracer.trace(), "traced"
    if traced["ended"] != "steps":
        traced, source = tracer.trace(fake=False), "small-runs"
    seconds = time.monotonic() - began
    measured = tracer.measure()
    return Row(words, traced["peak_bytes"], measured["peak_bytes"], seconds, source, *peers(words))


def peers(words: str) -> tuple[float, float]:
    """What accelerate and MemTracker say of the same training, in bytes."""
    from accelerate.utils import calculate_maximum_sizes
    from torch.distributed._tools.mem_tracker import MemTracker
    sys.argv = [str(PROGRAM), *arguments(words)]
    made = runpy.run_path(str(PROGRAM))
    weights, _ = calculate_maximum_sizes(made["model"])
    model, optimizer = made["model"], made["optimizer"]
    if made["args"].accumulate > 1:
        return 4.0 * weights, float("nan")  # it refuses a second forward
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker, contextlib.redirect_stdout(io.StringIO()):
        train_once(made, model, optimizer)
    snapshot = tracker.get_tracker_snapshot("peak")
    return 4.0 * weights, float(sum(device["Total"] for device in snapshot.values()))


def train_once(made: dict, model, optimizer) -> None:
    """One optimizer step of the program's own loop."""
    import torch
    options, functional = made["args"], made["F"]
    optimizer.zero_grad()
    for _ in range(options.accumulate):
        x, y = made["inputs"](options.batch), made["targets"](options.batch)
        with torch.autocast("cpu", dtype=torch.bfloat16) if options.autocast else contextlib.nullcontext():
            out = model(x)
            out, y = (out, y) if options.model in ("cnn", "vit", "mlp", "unet") else (out.flatten(0, 1), y.flatten())
            loss = functional.cross_entropy(out, y)
        (loss / options.accumulate).backward()
    optimizer.step()


def beside(row: Row) -> str:
    return "-" if row.mem_tracker != row.mem_tracker else f"{row.mem_tracker / row.measured - 1:+.2%}"


def table(rows: list[Row]) -> str:
    lines = ["| training | measured MB | traced MB | error | bound | accelerate | MemTracker | how |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.words} | {row.measured / 1e6:.2f} | {row.traced / 1e6:.2f} | {row.error:+.2%} | {row.bound:.0%} | "
                     f"{row.accelerate / row.measured - 1:+.0%} | {beside(row)} | {row.source} |")
    within = sum(abs(row.error) <= row.bound for row in rows)
    worst = max(rows, key=lambda row: abs(row.error))
    return "\n".join([*lines, "", f"{within} of {len(rows)} within their bound; largest error {worst.error:+.2%} ({worst.words})."])


def large() -> str:
    with Tracer(program_of(LARGE), 900) as tracer:
        began = time.monotonic()
        found = tracer.trace(device="cuda", changes={"foreach": {}})
        return (f"{found['parameter_count']:.3g} parameters ({LARGE}): {time.monotonic() - began:.0f} s from a cold start, "
                f"{found['resident'] / 1e9:.2f} GB resident, peak {found['peak_bytes'] / 1e9:.1f} GB in {found['phase']}.")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    with Tracer(program_of("mlp"), 600) as tracer:
        for words in CONFIGURATIONS:
            if options.only in words:
                rows.append(row_of(words, tracer))
                print(table(rows[-1:]).splitlines()[2], f"{rows[-1].seconds:.0f} s", flush=True)
    parts = [part for part in (table(rows) if rows else "", large() if options.large else "") if part]
    print("\n\n".join(parts))
    if options.write:
        (HERE / "memory.md").write_text("# Traced memory against measured\n\n" + "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
