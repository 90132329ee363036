"""Waiting: for the next batch, and for values that are read out of tensors."""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from traindx.core.observed import Site
from traindx.core.observed.speed import LoaderTime, Reads
from traindx.probes import sites
from traindx.probes.loaders import Loaders, written
from traindx.probes.session import Probe, ReadRun, Session, StepRun

READ_LINES = 40


def install(session: Session) -> None:
    session.add(Waiting)
    session.add(Reading)


@dataclass
class _Clock:
    iteration: int
    last: float
    queue: float
    batches: int = 0
    seconds: float = 0.0
    waiting: float = 0.0
    queued: float = 0.0
    fetch_site: Site | None = None


def _queued() -> float:
    """Seconds this thread has stood in the run queue so far (Linux, Documentation/scheduler/sched-stats.rst); 0.0 elsewhere."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            return int(file.read(96).split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


class Waiting(Probe):
    """Time from batch to batch of a loader, and the part of it spent in its ``__next__``."""

    areas = ("speed",)
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._clocks: dict[int, _Clock] = {}
        self._began: float | None = None

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        if loader is None:
            return
        now = time.perf_counter()
        if self._began is None:
            self._began = now
        id, iteration = Loaders.instance.iteration(loader)
        queued = _queued()
        clock = self._clocks.get(id)
        if clock is None:
            if len(self._clocks) < 100:
                self._clocks[id] = _Clock(iteration, now, queue=queued, fetch_site=_fetch_site(loader))
            return
        if clock.iteration == iteration:
            clock.batches += 1
            clock.seconds += now - clock.last
            clock.waiting += seconds
            clock.queued += min(max(queued - clock.queue, 0.0), now - clock.last)  # loaders may be read by several threads
        clock.iteration, clock.last, clock.queue = iteration, now, queued

    def on_tick(self, step: int) -> None:
        if self.session.detailed and step > 8:
            self.at_end()

    def at_end(self) -> None:
        elapsed = time.perf_counter() - self._began if self._began is not None else 0.0
        for id, clock in self._clocks.items():
            if clock.batches:
                self.session.emit(LoaderTime(
                    step=self.session.step, key=f"time-{id}", loader=id, batches=clock.batches, seconds=clock.seconds,
                    waiting=clock.waiting, queued=clock.queued, elapsed=elapsed, fetch_site=clock.fetch_site))


def _fetch_site(loader: Any) -> Site | None:
    """The first of dataset and collate function that the user wrote."""
    code = next(written(loader), None)
    return sites.at(code.co_filename, code.co_firstlineno, code.co_name) if code is not None else None


@dataclass
class _Line:
    site: Site | None
    device: str
    counts: list[int] = field(default_factory=list)
    seconds: float = 0.0
    now: int = 0


class Reading(Probe):
    """Reads per step and line, on detailed steps. Those that an optimizer of torch makes itself are not the program's."""

    areas = ("speed",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._lines: dict[int, _Line] = {}
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._stepping: Site | None = None  # the line that has called an optimizer

    def before_step(self, run: StepRun) -> None:
        self._stepping = run.site

    def after_step(self, run: StepRun) -> None:
        self._stepping = None

    def on_read(self, run: ReadRun) -> None:
        if not self.session.detailed or (self._stepping is not None and run.site is self._stepping):
            return
        line = self._lines.get(id(run.site))
        if line is None:
            if len(self._lines) >= READ_LINES:
                return
            line = self._lines[id(run.site)] = _Line(run.site, run.tensor.device.type)
        line.now += 1
        line.seconds += run.seconds

    def on_tick(self, step: int) -> None:
        now = time.perf_counter()
        if self.session.detailed:
            self._seconds += now - self._began
            for line in self._lines.values():
                if line.now or line.counts:
                    line.counts = [*line.counts[-30:], line.now]
                line.now = 0
        self._began = now

    def at_end(self) -> None:
        for number, line in enumerate(self._lines.values()):
            if line.counts:
                self.session.emit(Reads(
                    step=self.session.step, key=f"reads-{number}", site=line.site, steps=len(line.counts), device=line.device,
                    count=sorted(line.counts)[len(line.counts) // 2], share=line.seconds / max(self._seconds, 1e-9)))
