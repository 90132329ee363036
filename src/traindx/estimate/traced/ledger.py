"""Births and deaths of storages -> the peak: when, where, and what was alive. Plain arithmetic over records."""
from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx.core.memory import CATEGORIES, PHASES
from traindx.core.observed import Site

Json = Any
Point = tuple[int, str, dict[str, int]]  # live bytes, phase, by category
POINTS = 400  # of a timeline that is drawn
MOST = 12  # modules and places that are told
DATA = "data"  # between a step and the next forward
AFTER = "after"  # between a backward and what follows: clipping, or the next micro-batch
SHOWN = {DATA: "forward", AFTER: "backward"}


@dataclass(slots=True)
class Record:
    """One storage. ``born`` and ``died`` count events; ``category`` is set by who is found to own it, else derived."""

    size: int
    born: int
    phase: str
    op: str
    site: Site | None
    module: str
    category: str = ""
    died: int = -1


@dataclass
class Ledger:
    """``births``, ``deaths`` and changes of size in order; ``windows`` are (first event, phase) of every stretch."""

    records: list[Record] = field(default_factory=list)
    events: list[tuple[int, int]] = field(default_factory=list)  # index of the record, change of bytes
    windows: list[tuple[int, str]] = field(default_factory=lambda: [(0, DATA)])

    @property
    def now(self) -> int:
        return len(self.events)

    def birth(self, size: int, phase: str, op: str, site: Site | None, module: str) -> int:
        self.records.append(Record(size, self.now, phase, op, site, module))
        self.events.append((len(self.records) - 1, size))
        return len(self.records) - 1

    def death(self, index: int) -> None:
        record = self.records[index]
        record.died = self.now
        self.events.append((index, -record.size))

    def resize(self, index: int, size: int) -> None:
        record = self.records[index]
        self.events.append((index, size - record.size))
        record.size = size

    def enter(self, phase: str) -> None:
        if self.windows[-1][1] != phase:
            self.windows.append((self.now, phase))


def category_of(record: Record, ledger: Ledger, begins: list[int]) -> str:
    """By owner where one was found. Else: what outlives a forward is an activation, what outlives the time before it is input, and
    the rest is temporary. ``begins`` are the first events of the windows."""
    if record.category:
        return record.category
    if record.phase in ("backward", "step"):
        return "temporaries"
    after = bisect_right(begins, record.born)
    ends = begins[after] if after < len(begins) else ledger.now
    if 0 <= record.died <= ends:
        return "temporaries"
    return "activations" if record.phase == "forward" else "inputs"


def account(ledger: Ledger) -> Json:
    """The peak and what is around it, as JSON values."""
    begins = [begin for begin, _ in ledger.windows]
    categories = [category_of(record, ledger, begins) for record in ledger.records]
    peaks, series = _sweep(ledger, categories)
    if not peaks:
        return {"peak_bytes": 0, "by_phase": {}, "categories": dict.fromkeys(CATEGORIES, 0), "timeline": []}
    phase = max(peaks, key=lambda name: peaks[name][0])
    size, at = peaks[phase]
    alive = [(record, category) for record, category in zip(ledger.records, categories)
             if record.born <= at and not 0 <= record.died <= at]
    made = ledger.records[ledger.events[at][0]]
    return {
        "peak_bytes": size, "phase": phase, "op": made.op, "where": _site(made.site), "module": made.module,
        "by_phase": {name: peak for name, (peak, _) in peaks.items()},
        "at_phase": {name: _sizes(ledger, categories, when) for name, (_, when) in peaks.items()},
        "categories": _sizes(ledger, categories, at),
        "modules": _largest(alive, lambda record: record.module or "-"), "places": _largest(alive, lambda record: record.site),
        "timeline": _thinned(series), "storages": len(ledger.records),
    }


def _sweep(ledger: Ledger, categories: list[str]) -> tuple[dict[str, tuple[int, int]], list[Point]]:
    """Highest bytes and the event of it, by phase; and the whole course."""
    live, by = 0, dict.fromkeys(CATEGORIES, 0)
    peaks: dict[str, tuple[int, int]] = {}
    series: list[Point] = []
    for at, (phase, (index, change)) in enumerate(zip(_phases(ledger), ledger.events)):
        live += change
        by[categories[index]] += change
        phase = SHOWN.get(phase, phase)
        if change > 0 and live > peaks.get(phase, (0, 0))[0]:
            peaks[phase] = (live, at)
        series.append((live, phase, dict(by)))
    return {phase: peaks[phase] for phase in PHASES if phase in peaks}, series


def _phases(ledger: Ledger) -> Iterator[str]:
    windows = [*ledger.windows, (ledger.now, "")]
    for (begin, phase), (end, _) in itertools.pairwise(windows):
        for _ in range(begin, end):
            yield phase


def _sizes(ledger: Ledger, categories: list[str], at: int) -> dict[str, int]:
    """Bytes by category after event ``at``."""
    sizes = dict.fromkeys(CATEGORIES, 0)
    for index, change in ledger.events[:at + 1]:
        sizes[categories[index]] += change
    return sizes


def _largest(alive: list[tuple[Record, str]], key: Any) -> list[Json]:
    sums: dict[Any, int] = defaultdict(int)
    kinds: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record, category in alive:
        sums[key(record)] += record.size
        kinds[key(record)][category] += record.size
    names = sorted(sums, key=lambda name: -sums[name])[:MOST]
    return [{"name": _site(name) if isinstance(name, Site) else name, "bytes": sums[name],
             "category": max(kinds[name], key=lambda kind: kinds[name][kind])} for name in names]


def _site(site: Site | None) -> Json:
    return None if site is None else {"file": site.file, "line": site.line, "function": site.function, "code": site.code}


def _thinned(series: list[Point]) -> list[Json]:
    """At most POINTS points, the highest of each stretch."""
    every = max(1, -(-len(series) // POINTS))
    stretches = (series[begin:begin + every] for begin in range(0, len(series), every))
    return [list(highest(stretch)) for stretch in stretches]


def highest(points: list[Point]) -> Point:
    return max(points, key=lambda point: point[0])
