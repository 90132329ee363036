"""Fewer points, the same picture: of every bucket its lowest and highest point stay, and the first NaN or Inf; and both ends."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

X = TypeVar("X", int, float)


def thinned(points: Sequence[tuple[X, float]], buckets: int) -> Sequence[tuple[X, float]]:
    """At most three points of each bucket and the ends, in their order; the input itself where it is short already."""
    if len(points) <= 2 * buckets:
        return points
    size = math.ceil(len(points) / buckets)
    kept = [point for start in range(0, len(points), size) for point in _telling_points(points[start:start + size])]
    return _with_ends(points[0], kept, points[-1])


def _with_ends(first: tuple[X, float], kept: list[tuple[X, float]], last: tuple[X, float]) -> list[tuple[X, float]]:
    """Steps tell points apart: NaN is not equal to itself."""
    if kept[0][0] != first[0]:
        kept.insert(0, first)
    if kept[-1][0] != last[0]:
        kept.append(last)
    return kept


def _telling_points(part: Sequence[tuple[X, float]]) -> list[tuple[X, float]]:
    steps, values = zip(*part) if part else ((), ())
    return _telling(steps, values)


def _telling(steps: Sequence[X], values: Sequence[float]) -> list[tuple[X, float]]:
    """Lowest, highest and first non-finite point of a bucket, in their order."""
    if not values:
        return []
    if math.isfinite(sum(values)):  # none of them is NaN or infinite
        kept = {values.index(min(values)), values.index(max(values))}
    else:
        finite = [at for at, value in enumerate(values) if math.isfinite(value)]
        kept = {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)} if finite else set()
        if len(finite) < len(values):  # else only their sum is too large
            kept.add(next(at for at, value in enumerate(values) if not math.isfinite(value)))
    return [(steps[at], values[at]) for at in sorted(kept)]


class Thinner:
    """The same for a stream of unknown length, in bounded memory: where there are too many points, the buckets double."""

    def __init__(self, buckets: int) -> None:
        self._most = 2 * buckets
        self._size = 1  # points in a bucket
        self._done: list[list[tuple[int, float]]] = []
        self._steps: list[int] = []  # of the bucket that is not full yet
        self._values: list[float] = []
        self._first = self._last = (0, 0.0)
        self.count = 0

    def extend(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """The next points, in their order. Two columns, not pairs: of millions of points only a few are ever looked at alone."""
        if not steps:
            return
        if not self.count:
            self._first = (steps[0], values[0])
        self._last = (steps[-1], values[-1])
        self.count += len(steps)
        self._steps += steps
        self._values += values
        at = 0
        while len(self._steps) - at >= self._size:
            size = self._size
            self._close(self._steps[at:at + size], self._values[at:at + size])
            at += size
        self._steps, self._values = self._steps[at:], self._values[at:]

    def _close(self, steps: list[int], values: list[float]) -> None:
        self._done.append(_telling(steps, values))
        if len(self._done) >= self._most:
            pairs = zip(self._done[::2], self._done[1::2])
            self._done = [_telling_points(left + right) for left, right in pairs]
            self._size *= 2

    @property
    def state(self) -> dict[str, Any]:
        """Everything, as JSON; :meth:`of` makes a thinner of it that goes on from there."""
        return {"most": self._most, "size": self._size, "done": self._done, "steps": self._steps, "values": self._values,
                "ends": [self._first, self._last], "count": self.count}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Thinner:
        """Raises KeyError or TypeError for what is no state."""
        made = cls(0)
        made._most, made._size, made.count = (int(state[name]) for name in ("most", "size", "count"))
        made._done = [[(step, value) for step, value in bucket] for bucket in state["done"]]
        made._steps, made._values = list(state["steps"]), list(state["values"])
        made._first, made._last = ((step, value) for step, value in state["ends"])
        return made

    @property
    def points(self) -> list[tuple[int, float]]:
        """What is kept so far."""
        kept = [point for bucket in [*self._done, _telling(self._steps, self._values)] for point in bucket]
        return _with_ends(self._first, kept, self._last) if kept else []
