"""The program's two steps for real, with the allocator's own record: the truth that an estimate is held against."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

Json = Any


class Measure:
    """Entered before the script; ``result`` after it. On CUDA the allocator's counters, else every allocation on the CPU."""

    def __init__(self) -> None:
        self.profile: Any = None

    def install(self, stack: ExitStack) -> None:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
            return
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
        self.profile.__enter__()

    def result(self) -> Json:
        if self.profile is None:
            return on_cuda(torch.cuda.memory_stats(), torch.cuda.mem_get_info()[1])
        self.profile.__exit__(None, None, None)
        events = self.profile.profiler.kineto_results.events()
        return on_cpu([(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"],
                      [(e.start_ns(), e.start_ns() + e.duration_ns(), e.name()) for e in events if e.name() != "[memory]"])


def on_cuda(stats: dict[str, Any], capacity: int) -> Json:
    """From ``torch.cuda.memory_stats()``: ``allocated`` by tensors, ``reserved`` from the driver, what is lost between them."""
    allocated, reserved = stats.get("allocated_bytes.all.peak", 0), stats.get("reserved_bytes.all.peak", 0)
    return {"device": "cuda", "peak_bytes": allocated, "reserved": reserved, "capacity": capacity,
            "retries": stats.get("num_alloc_retries", 0), "inactive": stats.get("inactive_split_bytes.all.peak", 0)}


def on_cpu(changes: list[tuple[int, int]], operations: list[tuple[int, int, str]]) -> Json:
    """From the allocations in time (ns, bytes) and the operations (begin, end, name): the peak, and what the operation running
    then had taken for itself."""
    live = peak = at = 0
    changes.sort(key=lambda change: change[0])
    for time, size in changes:
        live += size
        if live > peak:
            peak, at = live, time
    kernels = [o for o in operations if o[0] <= at <= o[1] and o[2].startswith("aten::")]
    running = max(kernels, key=lambda o: o[1] - o[0], default=None)
    return {"device": "cpu", "peak_bytes": peak, "running": running[2].removeprefix("aten::") if running else "",
            "inside": _inside(changes, running, at) if running else 0}


def _inside(changes: list[tuple[int, int]], operation: tuple[int, int, str], at: int) -> int:
    """Bytes that an operation had taken since it began, at a time."""
    return sum(size for time, size in changes if operation[0] <= time <= at)

