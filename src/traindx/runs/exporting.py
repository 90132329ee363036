"""Curves in the forms of other tools: CSV, TensorBoard event files (written by hand: no dependency), Parquet (pyarrow)."""
from __future__ import annotations

import csv
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from traindx.errors import UsageError
from traindx.runs import words

Series = Mapping[str, Sequence[tuple[int, float]]]


def table(series: Series) -> tuple[list[str], list[list[float | int | None]]]:
    """Names, and one row a step with None where a curve has no point."""
    names = sorted(series)
    steps = sorted({step for points in series.values() for step, _ in points})
    columns = [dict(series[name]) for name in names]
    return ["step", *names], [[step, *(column.get(step) for column in columns)] for step in steps]


def to_csv(series: Series, file: IO[str]) -> None:
    """NaN and infinities as ``nan``, ``inf``; an empty cell where there is no point."""
    names, rows = table(series)
    writer = csv.writer(file)
    writer.writerow(names)
    writer.writerows(rows)


def to_parquet(series: Series, file: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError(words.NO_PYARROW) from None
    names, rows = table(series)
    columns = list(zip(*rows)) if rows else [()] * len(names)
    types = [pyarrow.int64(), *[pyarrow.float64()] * (len(names) - 1)]
    arrays = [pyarrow.array(column, type=kind) for column, kind in zip(columns, types)]
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=names), file)


def to_tensorboard(series: Series, folder: Path, began: float) -> Path:
    """An event file with a scalar a point. ``began`` (seconds since 1970) stands for the time of every event."""
    out = EventFile(folder, began)
    for name in sorted(series):
        for step, value in series[name]:
            out.scalar(began, step, name, value)
    out.close()
    return out.path


class EventFile:
    """A file that TensorBoard reads, also while it grows."""

    def __init__(self, folder: Path, began: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{int(began)}.traindx"
        self._out = open(self.path, "wb")  # noqa: SIM115  as long as the run lives
        self._out.write(_framed(_double(1, began) + _bytes(3, b"brain.Event:2")))

    def scalar(self, time: float, step: int, name: str, value: float) -> None:
        self._out.write(_framed(scalar_event(time, step, name, value)))

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self._out.close()


def scalar_event(time: float, step: int, tag: str, value: float) -> bytes:
    """tensorflow.Event {wall_time = 1, step = 2, summary = 5 {value = 1 {tag = 1, simple_value = 2}}} in protobuf's wire format."""
    try:
        simple = struct.pack("<f", value)
    except OverflowError:
        simple = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    inner = _bytes(1, tag.encode()) + bytes([2 << 3 | 5]) + simple
    return _double(1, time) + bytes([2 << 3]) + _varint(step) + _bytes(5, _bytes(1, inner))


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _framed(data: bytes) -> bytes:
    """A record of a TFRecord file: length, its checksum, the data, its checksum."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked_crc(length)) + data + struct.pack("<I", _masked_crc(data))


def _masked_crc(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, reflected polynomial 0x82F63B78 (RFC 3720)."""
    crc, lookup = 0xFFFFFFFF, _crc_table()
    for byte in data:
        crc = lookup[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    def entries() -> Iterator[int]:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            yield value
    return tuple(entries())
