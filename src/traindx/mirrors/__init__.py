"""Curves of a run that goes on, copied to W&B, MLflow or TensorBoard.

It happens in our own process, in a thread that only reads what the run wrote into its folder: the program that trains has no part
in it, and what goes wrong here ends the copying and nothing else. Names, settings and arguments are those of the record, in
which secrets are masked.
"""
from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from traindx.core.recording import METRICS, Recording, Tail
from traindx.core.text import Text
from traindx.errors import UsageError

KNOWN = {"wandb": "wandb", "mlflow": "mlflow", "tensorboard": ""}  # what must be installed for each
POLL_SECONDS = 1.0
LAST_SECONDS = 60.0  # for what is still to be sent when the run is over
Rows = list[tuple[int, dict[str, float]]]

UNKNOWN = Text("--mirror {name}: known are {known}", "--mirror {name}：可用的有 {known}")
NOT_INSTALLED = Text("--mirror {name} needs the package {name}: pip install 'traindx[{name}]'",
                     "--mirror {name} 需要安装 {name}：pip install 'traindx[{name}]'")
BROKE = Text("traindx: the mirror to {name} stopped: {problem}. The run and its record go on.",
             "traindx：到 {name} 的同步停了：{problem}。训练和记录不受影响。")
LATE = Text("traindx: the mirror to {name} was not done within {seconds} s after the end: what is missing is in {folder}",
            "traindx：结束 {seconds} 秒后到 {name} 的同步还没完成，缺的部分在 {folder} 里")


@dataclass(frozen=True)
class About:
    """What is told of a run: as in its record."""

    name: str
    script: str
    argv: tuple[str, ...]
    folder: Path


class Place(Protocol):
    """Where curves are copied to. All methods are called from one thread."""

    def begin(self, about: About) -> None: ...

    def settings(self, values: Mapping[str, Any]) -> None:
        """What the program was told and what it really used, known after its first step."""

    def scalars(self, rows: Rows) -> None:
        """``(step, {name: value})`` in the order in which they were written; a step may come again with other names."""

    def end(self, status: str, findings: Sequence[str]) -> None:
        """``finished``, ``failed`` or ``killed ...``; the rules that found something."""


def check(names: Sequence[str]) -> None:
    """Raises UsageError for what is not known or not installed: before the training, not after it."""
    for name in names:
        if name not in KNOWN:
            raise UsageError(UNKNOWN.fill(name=name, known=", ".join(KNOWN)))
        if KNOWN[name] and importlib.util.find_spec(KNOWN[name]) is None:
            raise UsageError(NOT_INSTALLED.fill(name=name))


def place(name: str) -> Place:
    made: Place = importlib.import_module(f"{__name__}.{name}").Mirror()
    return made


@dataclass
class Following:
    """One mirror at work. ``complain`` hears, once, why it stopped."""

    name: str
    about: About
    complain: Callable[[Text], None]
    settings_of: Callable[[], Mapping[str, Any]] = dict
    make: Callable[[str], Place] = place
    _over: threading.Event = field(default_factory=threading.Event)
    _last: tuple[str, Sequence[str]] = ("killed", ())
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._guarded, daemon=True, name=f"traindx mirror {self.name}")
        self._thread.start()

    def finish(self, status: str, findings: Sequence[str], seconds: float = LAST_SECONDS) -> None:
        """Waits, but not for ever, until everything is sent."""
        self._last = status, findings
        self._over.set()
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                self.complain(LATE.fill(name=self.name, seconds=round(seconds), folder=self.about.folder))

    def _guarded(self) -> None:
        try:
            self._follow()
        except (Exception, SystemExit) as problem:
            words = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
            self.complain(BROKE.fill(name=self.name, problem=words))

    def _follow(self) -> None:
        there = self.make(self.name)
        there.begin(self.about)
        tail = Tail(self.about.folder, Recording(), (METRICS,))
        told = over = False
        while not over:
            over = self._over.wait(POLL_SECONDS)  # what was written before the end is read after it
            tail.read()
            if rows := _taken(tail.recording):
                there.scalars(rows)
            if (rows or over) and not told and (values := self.settings_of()):
                there.settings(values)
                told = True
        there.end(*self._last)


def _taken(recording: Recording) -> Rows:
    """The new points by step; nothing is kept in memory."""
    rows: dict[int, dict[str, float]] = {}
    for name, points in recording.series.items():
        for step, value in points:
            rows.setdefault(step, {})[name] = value
    recording.series.clear()
    return sorted(rows.items())
