"""What else the machine did while we measured."""
from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from traindx.core.speed import Load
from traindx.engine import processes

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Watch:
    """``with Watch() as watch: ...``; then ``watch.load``. ``average``: the load average before anything of ours ran."""

    def __init__(self, average: float | None = None) -> None:
        self.average = average
        self.load = Load(processes.cores(), average)

    def __enter__(self) -> Watch:
        self._before = time.monotonic(), _busy(), _ours()
        return self

    def __exit__(self, *exc: object) -> None:
        began, busy, ours = self._before
        now = _busy()
        elapsed = time.monotonic() - began
        if busy is None or now is None or elapsed < 0.5:
            return
        all_busy = (now[0] - busy[0]) / elapsed
        others = max(0.0, all_busy - (_ours() - ours) / elapsed)
        free = now[1] - all_busy
        self.load = Load(processes.cores(), self.average, others if free < 0.15 * now[1] else 0.0)


def average() -> float | None:
    """Processes that ran or waited to, over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _busy() -> tuple[float, int] | None:
    """Seconds that all cores of the machine were busy since it began, and how many they are; None where /proc/stat is not."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/stat").read_text().splitlines()
        fields = [int(word) for word in lines[0].split()[1:9]]
        idle = fields[3] + fields[4]
        return (sum(fields) - idle) / _TICK, sum(line.startswith("cpu") for line in lines) - 1
    return None


def _ours() -> float:
    return processes.cpu_seconds([os.getpid(), *processes.below(os.getpid())])
