"""Traced peak against the allocator's, on many kinds of training, beside what other estimators say of the same model.

    python benchmarks/memory.py [--only WORD] [--large] [--write]

The truth is the peak of all allocations on the CPU in two real steps of ``memory_program.py`` (torch.profiler's record). Peers:
accelerate's estimate for training in fp32 (four times the weights), DeepSpeed's function for ZeRO 2 on one GPU (20 bytes a parameter: half
precision with a master copy and Adam), torchinfo's estimated total (parameters, input and a forward's outputs), each where it is installed,
and torch.distributed._tools.MemTracker around one real step (it refuses accumulation).
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
    peers: dict[str, float]  # bytes; those that are installed and take this training

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
    return Row(words, traced["peak_bytes"], measured["peak_bytes"], seconds, source, peers(words))


def peers(words: str) -> dict[str, float]:
    """What others say of the same training, in bytes."""
    sys.argv = [str(PROGRAM), *arguments(words)]
    made = runpy.run_path(str(PROGRAM))
    said = {}
    for name, ask in PEERS.items():
        with contextlib.suppress(ImportError):
            if (value := ask(made)) is not None:
                said[name] = value
    return said


def accelerate(made: dict) -> float:
    from accelerate.utils import calculate_maximum_sizes
    return 4.0 * calculate_maximum_sizes(made["model"])[0]


def deepspeed(made: dict) -> float:
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
    return float(estimate_zero2_model_states_mem_needs(sum(p.numel() for p in made["model"].parameters()), 1, 1, cpu_offload=False)[1])


def torchinfo(made: dict) -> float:
    from torchinfo import summary
    found = summary(made["model"], input_data=[made["inputs"](made["args"].batch)], verbose=0)
    return float(found.total_input + found.total_output_bytes + found.total_param_bytes)


def mem_tracker(made: dict) -> float | None:
    from torch.distributed._tools.mem_tracker import MemTracker
    if made["args"].accumulate > 1:
        return None  # it refuses a second forward
    model, optimizer = made["model"], made["optimizer"]
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker, contextlib.redirect_stdout(io.StringIO()):
        train_once(made, model, optimizer)
    return float(sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values()))


PEERS = {"accelerate": accelerate, "DeepSpeed": deepspeed, "torchinfo": torchinfo, "MemTracker": mem_tracker}


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


def beside(row: Row, name: str) -> str:
    error = row.peers[name] / row.measured - 1 if name in row.peers else None
    return "-" if error is None else f"{error:+.2%}" if abs(error) < 0.2 else f"{error:+.0%}"


def table(rows: list[Row]) -> str:
    names = ("training", "measured MB", "traced MB", "error", "bound", *PEERS, "how")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in rows:
        cells = (row.words, f"{row.measured / 1e6:.2f}", f"{row.traced / 1e6:.2f}", f"{row.error:+.2%}", f"{row.bound:.0%}",
                 *(beside(row, name) for name in PEERS), row.source)
        lines.append(f"| {' | '.join(cells)} |")
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
