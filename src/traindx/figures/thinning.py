"""Fewer points, the same picture: of every bucket its lowest and highest point stay, and the first NaN or Inf; and both ends."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

X = TypeVar("X", int, float)


def thinned(points: Sequence[tuple[X, float]], buckets: int) -> Sequence[tuple[X, float]]:
    """At most three points of each bucket and the ends, in their order; the input itself where it is short already."""
    if len(points) <= 2 * buckets:
        return points
    size = math.ceil(len(points) / buckets)
    kept = [point for start in range(0, len(points), size) for point in _telling(points[start:start + size])]
    return _with_ends(points[0], kept, points[-1])


def _with_ends(first: tuple[X, float], kept: list[tuple[X, float]], last: tuple[X, float]) -> list[tuple[X, float]]:
    """Steps tell points apart: NaN is not equal to itself."""
    if kept[0][0] != first[0]:
        kept.insert(0, first)
    if kept[-1][0] != last[0]:
        kept.append(last)
    return kept


def _telling(part: Sequence[tuple[X, float]]) -> list[tuple[X, float]]:
    """Lowest, highest and first non-finite point of a bucket, in their order."""
    values = [value for _, value in part]
    finite = [at for at, value in enumerate(values) if value - value == 0]  # neither NaN nor infinite
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
        self._first = self._last = (0, 0.0)
        self.count = 0

    def extend(self, points: Sequence[tuple[int, float]]) -> None:
        """The next points, in their order."""
        if not points:
            return
        if not self.count:
            self._first = points[0]
        self._last = points[-1]
        self.count += len(points)
        at = 0
        while at < len(points):
            until = at + self._size - len(self._open)
            self._open += points[at:until]
            at = until
            if len(self._open) == self._size:
                self._close()

    def _close(self) -> None:
        self._done.append(_telling(self._open) if self._size > 1 else self._open)
        self._open = []
        if len(self._done) >= self._most:
            self._double()

    def _double(self) -> None:
        pairs = zip(self._done[::2], self._done[1::2])
        self._done = [_telling(left + right) for left, right in pairs]
        self._size *= 2

    @property
    def points(self) -> list[tuple[int, float]]:
        """What is kept so far."""
        kept = [point for bucket in [*self._done, _telling(self._open)] for point in bucket]
        return _with_ends(self._first, kept, self._last) if kept else []
