"""A Recording: everything that was observed in one run, in order. Lives in a run folder as ``events.jsonl``."""
from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from traindx.core import observed
from traindx.core.codec import decode, encode
from traindx.core.observed import Ended, Observation

O = TypeVar("O", bound=Observation)
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"
BROKEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)  # a line that is none of ours


def is_step(value: object) -> bool:
    """A whole number that 64 bits hold."""
    return type(value) is int and abs(value) < 2**63


@cache
def kinds() -> dict[str, type[Observation]]:
    """Every kind of observation by name."""
    for module in pkgutil.iter_modules(observed.__path__):
        importlib.import_module(f"{observed.__name__}.{module.name}")
    return Observation.kinds


def to_line(observation: Observation) -> str:
    return json.dumps({"kind": type(observation).__name__, **encode(observation)}, ensure_ascii=False) + "\n"


class Recording:
    """Observations and scalar series of one run.

    ``series`` maps a metric's name (``loss``, ``lr``, ``grad_norm`` ...) to ``[(step, value), ...]``.
    ``lost`` counts lines that could not be read.
    """

    def __init__(self, observations: Iterable[Observation] = ()) -> None:
        self._by_kind: dict[type[Observation], dict[str, Observation]] = {}
        self._count = 0
        self.series: dict[str, list[tuple[int, float]]] = {}
        self.lost = 0
        self.ranks: dict[int, Recording] = {}  # of every rank, this one's own among them, where several train together
        for observation in observations:
            self.add(observation)

    def add(self, observation: Observation) -> None:
        self._count += 1
        key = observation.key or f"#{self._count}"
        self._by_kind.setdefault(type(observation), {})[key] = observation

    def of(self, kind: type[O]) -> list[O]:
        """All observations of a kind, in the order in which they were first made."""
        return list(self._by_kind.get(kind, {}).values())  # type: ignore[arg-type]

    def last(self, kind: type[O]) -> O | None:
        found = self.of(kind)
        return found[-1] if found else None

    @property
    def empty(self) -> bool:
        """Nothing was ever recorded: torch was not imported."""
        return not self._by_kind and not self.series

    @property
    def steps(self) -> int:
        """Training steps done; where the end was not recorded, those whose metrics were."""
        ended = self.last(Ended)
        return ended.steps if ended else max((points[-1][0] for points in self.series.values() if points), default=0)

    def add_line(self, line: str) -> None:
        try:
            fields = json.loads(line)
            kind = kinds().get(fields.pop("kind"))
            if kind is not None:  # a kind that only a newer traindx knows
                self.add(decode(kind, fields))
        except BROKEN:
            self.lost += 1

    def add_metrics(self, line: str) -> None:
        try:
            row = json.loads(line)
            step = row.pop("step")
            if not is_step(step):
                raise TypeError("a step is a whole number")
            nonfinite = row.pop("nonfinite", {})
            for name, value in row.items():
                if value is None:
                    value = float(nonfinite.get(name, "nan"))
                if isinstance(value, (int, float)):
                    self.series.setdefault(name, []).append((step, float(value)))
        except BROKEN:
            self.lost += 1

    @classmethod
    def read(cls, folder: Path, files: Sequence[str] = (EVENTS, METRICS)) -> Recording:
        """The recording in a run folder, or what some of its files hold; lines that are broken are passed over and counted."""
        recording = cls()
        tail = Tail(folder, recording, files)
        tail.read()
        tail.finish()
        return recording


class Tail:
    """Follows the files of a run that may still be writing, or some of them."""

    def __init__(self, folder: Path, recording: Recording, files: Sequence[str] = (EVENTS, METRICS)) -> None:
        self.recording = recording
        self._rest = dict.fromkeys(files, b"")
        self._at = dict.fromkeys(files, 0)
        self._folder = folder

    def read(self) -> int:
        """Takes in what is new; the number of lines read."""
        count = 0
        for name in self._at:
            add = self.recording.add_line if name == EVENTS else self.recording.add_metrics
            for line in self._new_lines(name):
                add(line)
                count += 1
        return count

    def finish(self) -> None:
        """A last line without its end was cut off: counted as lost."""
        self.recording.lost += sum(bool(rest.strip()) for rest in self._rest.values())

    def _new_lines(self, name: str) -> Iterator[str]:
        if not (self._folder / name).is_file():  # a pipe would never end
            return
        try:
            with open(self._folder / name, "rb") as file:
                file.seek(self._at[name])
                new = file.read()
        except OSError:
            return
        self._at[name] += len(new)
        *whole, self._rest[name] = (self._rest[name] + new).split(b"\n")
        for line in whole:
            if line.strip():
                yield line.decode("utf-8", "replace")


@cache
def _key(name: str) -> str:
    return json.dumps(name)


def metrics_line(step: int, values: dict[str, float]) -> str:
    """One line of metrics.jsonl: NaN and infinities as null, named in ``nonfinite``. Written for every step: json.dumps is too slow."""
    parts, nonfinite = [f'{{"step": {step}'], {}
    for name, value in values.items():
        value = float(value)
        if value - value == 0:
            parts.append(f"{_key(name)}: {value!r}")
        else:
            parts.append(f"{_key(name)}: null")
            nonfinite[name] = str(value)
    if nonfinite:
        parts.append(f'"nonfinite": {json.dumps(nonfinite)}')
    return ", ".join(parts) + "}\n"
