"""Writes observations and metrics to the run folder as they come. A disk that fails stops the recording, never the training."""
from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from traindx.core.observed import Observation
from traindx.core.recording import EVENTS, METRICS, Recording, metrics_line, to_line

AT_ONCE_UP_TO = 256  # steps: early ones may be all there is
HELD_BACK = 0.2  # seconds that metrics may wait later on
MOST_WAITING = 100  # lines
EVERY_STEP_UP_TO = 5_000  # beyond it, metrics are thinned so that the file grows with the logarithm of the run's length


class Recorder:
    """Keeps a Recording in memory (``folder`` None) or appends whole lines to files; metrics a few lines at a time."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.memory = Recording() if folder is None else None
        self._lock = threading.Lock()
        self._files: dict[str, int] = {}
        if folder is not None:
            for name in (EVENTS, METRICS):
                self._files[name] = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._typical: dict[str, float] = {}
        self._waiting: list[tuple[int, dict[str, float]]] = []  # metrics that are not yet written, by step
        self._due = 0.0

    def observe(self, observation: Observation) -> None:
        if self.memory is not None:
            self.memory.add(observation)
        else:
            self._write(EVENTS, to_line(observation))

    def metrics(self, step: int, values: dict[str, float]) -> None:
        """Takes the values of a step; they are looked at together, which costs less than one by one."""
        if not values:
            return
        self._waiting.append((step, values))
        if step <= AT_ONCE_UP_TO or len(self._waiting) >= MOST_WAITING or time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Writes the metrics that were held back for a moment: all that a program which is killed may lose."""
        waiting, self._waiting = self._waiting, []
        lines = [metrics_line(step, values) for step, values in waiting if self._keep(step, values)]
        if self.memory is not None:
            for line in lines:
                self.memory.add_metrics(line)
        elif lines:
            self._write(METRICS, "".join(lines))
        self._due = time.monotonic() + HELD_BACK

    def forget(self) -> None:
        """A forked child keeps nothing of what its parent will write."""
        self._waiting.clear()

    def _keep(self, step: int, values: dict[str, float]) -> bool:
        """Every step at first, then ever fewer; a value far from its running level is always kept."""
        stride = 1
        while step > EVERY_STEP_UP_TO * stride:
            stride *= 2
        spike = False
        for name, value in values.items():
            typical = self._typical.get(name)
            if typical is not None and not abs(value) <= 3 * typical:
                spike = True
            if value == value and abs(value) != float("inf"):
                self._typical[name] = abs(value) if typical is None else 0.98 * typical + 0.02 * min(abs(value), 10 * typical + 1e-12)
        return spike or step % stride == 0

    def _write(self, name: str, line: str) -> None:
        descriptor = self._files.get(name)
        if descriptor is None:
            return
        data = line.encode("utf-8", "replace")
        with self._lock:
            try:
                os.write(descriptor, data)
            except OSError as problem:
                self._waiting.clear()
                self.close()
                sys.stderr.write(f"traindx: recording stopped ({problem.strerror}); the training goes on\n")

    def close(self) -> None:
        self.flush()
        for descriptor in self._files.values():
            try:
                os.close(descriptor)
            except OSError:
                pass
        self._files = {}
