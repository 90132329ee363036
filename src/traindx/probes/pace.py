"""How fast it goes and how much memory it takes, on detailed steps; and whether the run folder is still there."""
from __future__ import annotations

import sys
import time
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed.record import Resources
from traindx.core.recording import METRICS
from traindx.probes.session import ForwardRun, Probe, Session
from traindx.probes.tensors import shape_of

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def install(session: Session) -> None:
    session.add(Pace)


class Pace(Probe):
    """Samples per second are those of training forwards since the value was last said."""

    areas = ("speed", "memory")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._samples = 0
        self._since = 0.0

    def before_forward(self, run: ForwardRun) -> None:
        if run.grad:
            self._samples += _rows(run)
            if not self._since:
                self._since = time.perf_counter()

    def on_tick(self, step: int) -> None:
        if not self.session.detailed:
            return
        now = time.perf_counter()
        if self._samples and step > 1:  # the first step holds what is only done once
            self.session.metric("samples_per_second", self._samples / max(now - self._since, 1e-9))
        self._samples, self._since = 0, now
        device = device_peak()
        self.session.metric("peak_memory_bytes", float(device if device is not None else peak_rss()))
        self._check_folder()

    def _check_folder(self) -> None:
        """Files stay open when somebody removes their folder: what is written then is lost."""
        recorder = self.session.recorder
        if recorder.folder is not None and not (recorder.folder / METRICS).exists():
            sys.stderr.write("traindx: recording stopped (the run folder is gone); the training goes on\n")
            recorder.close()
            recorder.folder = None

    def at_end(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF) if resource else None
        self.session.emit(Resources(key="resources", peak_rss=peak_rss(), device_peak=device_peak(),
                                    cpu_seconds=round(used.ru_utime + used.ru_stime, 3) if used else 0.0))


def _rows(run: ForwardRun) -> int:
    """Size of the first dimension of the first tensor given."""
    for value in (*run.args, *run.kwargs.values()):
        if isinstance(value, Tensor) and not value.is_nested and (shape := shape_of(value)):
            return shape[0]
    return 0


def device_peak() -> int | None:
    """Bytes allocated at most on the current CUDA device; None where CUDA was not started."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_initialized() else None


def peak_rss() -> int:
    """Bytes of memory that the process held at most."""
    if resource is None:
        return 0
    size: Any = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(size) * (1 if sys.platform == "darwin" else 1024)
