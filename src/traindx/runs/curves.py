"""The curves of a run folder in few points, read as a stream: a file of millions of steps needs no more memory than a short one."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx.core.recording import BROKEN, METRICS
from traindx.figures.thinning import Thinner

BUCKETS = 600
CHUNK = 1 << 20  # bytes read at a time


class Curves:
    """Follows ``metrics.jsonl``, also while it is being written. ``lost`` counts lines that could not be read."""

    def __init__(self, folder: Path, buckets: int = BUCKETS) -> None:
        self._path, self._buckets = folder / METRICS, buckets
        self._at, self._rest = 0, b""
        self._series: dict[str, Thinner] = {}
        self.lost = 0
        self.steps = 0

    def read(self, most: int | None = None) -> bool:
        """Takes in what is new, about ``most`` bytes of it at a time; whether there was anything. A file that has become shorter is
        read anew."""
        before = self._at
        try:
            with open(self._path, "rb") as file:
                if file.seek(0, 2) < self._at:
                    self._forget()
                file.seek(self._at)
                while (most is None or self._at - before < most) and (chunk := file.read(CHUNK)):
                    self._take(chunk)
        except OSError:
            return False
        return self._at != before

    def _forget(self) -> None:
        self._at, self._rest, self._series, self.lost, self.steps = 0, b"", {}, 0, 0

    def _take(self, chunk: bytes) -> None:
        self._at += len(chunk)
        whole, cut, rest = (self._rest + chunk).rpartition(b"\n")
        self._rest = rest
        if cut:
            new: dict[str, list[tuple[int, float]]] = {}
            for row in self._rows(whole):
                self._add(row, new)
            for name, points in new.items():
                self._series.setdefault(name, Thinner(self._buckets)).extend(points)

    def _rows(self, whole: bytes) -> Iterator[Any]:
        """All lines at once, which is quick; one by one where that fails."""
        lines = [line for line in whole.split(b"\n") if line.strip()]
        try:
            rows = json.loads(b"[" + b",".join(lines) + b"]")
        except BROKEN:
            rows = []
        if len(rows) == len(lines):
            yield from rows
        else:
            yield from (row for line in lines if (row := self._one(line)) is not None)

    def _one(self, line: bytes) -> Any:
        try:
            return json.loads(line)
        except BROKEN:
            self.lost += 1
            return None

    def _add(self, row: Any, new: dict[str, list[tuple[int, float]]]) -> None:
        try:
            step = row.pop("step")
            nonfinite = row.pop("nonfinite", {})
            if type(step) is not int:
                raise TypeError("a step is a whole number")
            for name, value in row.items():
                if value is None:
                    value = float(nonfinite.get(name, "nan"))
                elif type(value) is not float:
                    if not isinstance(value, (int, float)):
                        continue
                    value = float(value)
                if name in new:
                    new[name].append((step, value))
                else:
                    new[name] = [(step, value)]
            self.steps = max(self.steps, step)
        except BROKEN:
            self.lost += 1

    @property
    def share(self) -> float:
        """How much of the file has been read, 0..1."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return 1.0
        return min(1.0, self._at / size) if size else 1.0

    @property
    def series(self) -> dict[str, list[tuple[int, float]]]:
        """What is known so far: ``{name: [(step, value), ...]}``, lowest and highest of each stretch, NaN and Inf kept."""
        return {name: thinner.points for name, thinner in self._series.items()}


def curves_of(folder: Path, buckets: int = BUCKETS) -> dict[str, list[tuple[int, float]]]:
    """The curves of a run that is over, or as far as it has come."""
    curves = Curves(folder, buckets)
    curves.read()
    return curves.series
