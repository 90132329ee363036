"""The curves of a run folder in few points and few numbers: one pass over ``metrics.jsonl``, in bounded memory."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.figures.thinning import Thinner
from traindx.runs.metrics import Columns, Metrics

BUCKETS = 600
NUMBERS = ("last", "min", "at_min", "max")
Numbers = dict[str, Any]  # of one series, over its finite values


class Curves:
    """Follows the metrics of a run, also while it writes."""

    def __init__(self, folder: Path, buckets: int = BUCKETS) -> None:
        self.folder, self._buckets = folder, buckets
        self._metrics = Metrics(folder)
        self._thinners: dict[str, Thinner] = {}
        self._numbers: dict[str, Numbers] = {}

    @property
    def state(self) -> dict[str, Any]:
        """How far the file has been read and what it says so far, as JSON."""
        return {"metrics": self._metrics.state, "series": {name: thinner.state for name, thinner in self._thinners.items()},
                "numbers": self._numbers}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on from where an earlier one was, if the file is the same still. Raises KeyError, TypeError, ... for what is no state."""
        metrics = Metrics(self.folder, state["metrics"])
        if metrics.at:
            thinners = {str(name): Thinner.of(kept) for name, kept in state["series"].items()}
            numbers = {str(name): {key: kept[key] for key in NUMBERS} for name, kept in state["numbers"].items()}
            self._metrics, self._thinners, self._numbers = metrics, thinners, numbers

    def read(self, most: int | None = None) -> bool:
        """Takes in what is new, about ``most`` bytes of it at a time; whether there was anything."""
        found = False
        for columns in self._metrics.new(most):
            found = True
            if columns is None:
                self._thinners, self._numbers = {}, {}
            else:
                self._take(columns)
        return found

    def _take(self, columns: Columns) -> None:
        for name, (steps, values) in columns.items():
            if name not in self._thinners:
                self._thinners[name] = Thinner(self._buckets)
            self._thinners[name].extend(steps, values)
            if (numbers := _numbers(steps, values)) is not None:
                self._numbers[name] = _joined(self._numbers.get(name, numbers), numbers)

    @property
    def lost(self) -> int:
        """Lines that could not be read."""
        return self._metrics.lost

    @property
    def steps(self) -> int:
        return self._metrics.steps

    @property
    def share(self) -> float:
        """How much of the file has been read, 0..1."""
        return self._metrics.share

    @property
    def at(self) -> int:
        """Bytes of the file that have been read."""
        return self._metrics.at

    @property
    def counts(self) -> dict[str, int]:
        """``{series: points}``, NaN and Inf among them."""
        return {name: thinner.count for name, thinner in self._thinners.items()}

    @property
    def series(self) -> dict[str, list[tuple[int, float]]]:
        """What is known so far: ``{name: [(step, value), ...]}``, lowest and highest of each stretch, NaN and Inf kept."""
        return {name: thinner.points for name, thinner in self._thinners.items()}

    @property
    def summary(self) -> dict[str, Numbers]:
        """As :func:`traindx.runs.facts.summary` has it of a recording; series without a finite value are left out."""
        return {name: {**self._numbers[name], "points": count} for name, count in self.counts.items() if name in self._numbers}


def _numbers(steps: Sequence[int], values: Sequence[float]) -> Numbers | None:
    if not math.isfinite(sum(values)):  # NaN or Inf among them, most often
        finite = [at for at, value in enumerate(values) if math.isfinite(value)]
        if not finite:
            return None
        steps, values = [steps[at] for at in finite], [values[at] for at in finite]
    low = min(values)
    return {"last": values[-1], "min": low, "at_min": steps[values.index(low)], "max": max(values)}


def _joined(before: Numbers, after: Numbers) -> Numbers:
    lower = min(before, after, key=lambda numbers: numbers["min"])
    return {"last": after["last"], "min": lower["min"], "at_min": lower["at_min"], "max": max(before["max"], after["max"])}
