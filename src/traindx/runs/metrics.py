"""``metrics.jsonl`` as columns, read as a stream: a file of millions of steps needs no more memory than a short one."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from errno import EINVAL
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from traindx.core.recording import BROKEN, METRICS, is_step

CHUNK = 1 << 20  # bytes read at a time
MARKED, TAIL = 4096, 2**16  # bytes
BESIDE = ("step", "nonfinite")  # what a line holds that is no series
Column = tuple[list[int], list[float]]  # steps and values
Columns = dict[str, Column]


class Metrics:
    """Follows the file, also while it is being written. ``lost`` counts lines that could not be read, ``steps`` is the highest step.

    ``state``: what another, which had read the file so far, said of itself; this one goes on from there if it is the same file still.
    """

    def __init__(self, folder: Path, state: Mapping[str, Any] | None = None) -> None:
        self.path = folder / METRICS
        self.at = self.lost = self.steps = self._inode = 0
        self._rest = b""
        if state is not None and state["mark"] == _mark(self.path, state["at"]):
            self.at, self.steps, self.lost = state["at"], state["steps"], state["lost"]

    @property
    def state(self) -> dict[str, Any]:
        """Up to the last whole line."""
        at = self.at - len(self._rest)
        return {"at": at, "mark": _mark(self.path, at), "steps": self.steps, "lost": self.lost}

    def new(self, most: int | None = None) -> Iterator[Columns | None]:
        """What was written since, a piece at a time, about ``most`` bytes of it; None where the file is another one or has become
        shorter, and is read from its beginning again."""
        try:
            with _opened(self.path) as file:
                about = os.fstat(file.fileno())
                if about.st_size < self.at or self._inode not in (0, about.st_ino):
                    self.at = self.lost = self.steps = 0
                    self._rest = b""
                    yield None
                self._inode = about.st_ino
                file.seek(self.at)
                before = self.at
                while (most is None or self.at - before < most) and (chunk := file.read(CHUNK)):
                    self.at += len(chunk)
                    yield self._columns(self._rows(chunk))
        except OSError:
            return

    @property
    def share(self) -> float:
        """How much of the file has been read, 0..1."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return 1.0
        return min(1.0, self.at / size) if size else 1.0

    def _rows(self, chunk: bytes) -> list[dict[str, Any]]:
        """All lines at once, which is quick; one by one where that fails."""
        whole, _, self._rest = (self._rest + chunk).rpartition(b"\n")
        try:
            rows = json.loads(b"[" + whole.replace(b"\n", b",") + b"]")
        except BROKEN:
            rows = []
        if len(rows) != whole.count(b"\n") + 1:
            rows = [_parsed(line) for line in whole.split(b"\n") if line.strip()]
        sound = rows if _all_sound(rows) else [row for row in rows if type(row) is dict and is_step(row.get("step"))]
        self.lost += len(rows) - len(sound)
        return sound

    def _columns(self, rows: list[dict[str, Any]]) -> Columns:
        steps = [row["step"] for row in rows]
        self.steps = max(self.steps, max(steps, default=0))
        found = {name: _column(name, rows, steps) for name in dict.fromkeys(chain.from_iterable(rows)) if name not in BESIDE}
        return {name: column for name, column in found.items() if column[0]}


def _opened(path: Path) -> BinaryIO:
    """Raises OSError for what is no file: a pipe would never end."""
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, os.strerror(EINVAL), str(path))
    return open(path, "rb")


def last_step(folder: Path) -> int:
    """The highest step in the last lines of the file; 0 where there is none."""
    try:
        with _opened(folder / METRICS) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read(TAIL).split(b"\n")
    except OSError:
        return 0
    rows = [row for line in lines if type(row := _parsed(line)) is dict]
    return max((row["step"] for row in rows if is_step(row.get("step"))), default=0)


def _mark(path: Path, at: int) -> str | None:
    """What the file holds in front of that byte, by which another file in its place is told from it; None where it does not reach so far."""
    start = max(0, at - MARKED)
    try:
        with _opened(path) as file:
            file.seek(start)
            held = file.read(at - start)
    except OSError:
        return None
    return sha256(held).hexdigest() if len(held) == at - start else None


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except BROKEN:
        return None


def _all_sound(rows: list[Any]) -> bool:
    """Whether each is an object with a step. This and what follows is done for millions of lines, so in loops that Python itself runs."""
    if set(map(type, rows)) != {dict}:
        return False
    steps = [row.get("step") for row in rows]
    return set(map(type, steps)) == {int} and is_step(min(steps)) and is_step(max(steps))


def _column(name: str, rows: list[dict[str, Any]], steps: list[int]) -> Column:
    """A series of these rows. Nearly always all its values are floats, and it stands in every row or in few."""
    try:
        having, values = rows, [row[name] for row in rows]
    except KeyError:
        having = [row for row in rows if name in row]
        steps, values = [row["step"] for row in having], [row[name] for row in having]
    if set(map(type, values)) == {float}:
        return steps, values
    numbers = [_number(row, name) for row in having]
    kept = [at for at, value in enumerate(numbers) if value is not None]
    return [steps[at] for at in kept], [value for value in numbers if value is not None]


def _number(row: Mapping[str, Any], name: str) -> float | None:
    """NaN and infinities are null and named beside; None for what is no number."""
    value = row[name]
    try:
        if value is None:
            return float(row.get("nonfinite", {}).get(name, "nan"))
        return float(value) if isinstance(value, (int, float)) else None
    except BROKEN:  # nonsense beside; a whole number that no float can hold
        return math.nan if value is None else None
