"""Fewer points, the same picture: of every bucket its lowest and highest point stay, and the first NaN or Inf."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

X = TypeVar("X", int, float)


def thinned(points: Sequence[tuple[X, float]], buckets: int) -> Sequence[tuple[X, float]]:
    """At most three points of each bucket, in their order; the input itself where it is short already."""
    if len(points) <= 2 * buckets:
        return points
    size = math.ceil(len(points) / buckets)
    return [point for start in range(0, len(points), size) for point in _telling(points[start:start + size])]


def _telling(part: Sequence[tuple[X, float]]) -> list[tuple[X, float]]:
    """Lowest, highest and first non-finite point of a bucket, in their order."""
    values = [value for _, value in part]
    finite = [at for at, value in enumerate(values) if value - value == 0]
    broken = next((at for at, value in enumerate(values) if value - value != 0), None) if len(finite) < len(values) else None
    kept = {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)} if finite else set()
    return [part[at] for at in sorted(kept if broken is None else kept | {broken})]


class Thinner:
    """The same for a stream of unknown length, in bounded memory: where there are too many points, the buckets double."""

    def __init__(self, buckets: int) -> None:
        self._most = 2 * buckets
        self._size = 1  # points in a bucket
        self._done: list[list[tuple[int, float]]] = []
        self._open: list[tuple[int, float]] = []
        self.count = 0

    def add(self, step: int, value: float) -> None:
        self.count += 1
        self._open.append((step, value))
        if len(self._open) >= self._size:
            self._done.append(_telling(self._open))
            self._open = []
            if len(self._done) >= self._most:
                self._double()

    def extend(self, points: Iterable[tuple[int, float]]) -> None:
        for step, value in points:
            self.add(step, value)

    def _double(self) -> None:
        pairs = zip(self._done[::2], self._done[1::2])
        self._done = [_telling([*left, *right]) for left, right in pairs]
        self._size *= 2

    @property
    def points(self) -> list[tuple[int, float]]:
        """What is kept so far, and the last point of all."""
        kept = [point for bucket in self._done for point in bucket]
        kept += _telling(self._open)
        return kept if not self._open or kept[-1:] == self._open[-1:] else [*kept, self._open[-1]]
