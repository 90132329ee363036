"""Bytes, times, counts, shares and rates as people write them: the one place for all pages. JSON keeps the raw numbers."""
from __future__ import annotations

from traindx.core.text import number

_DECIMAL = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def size(count: float) -> str:
    """Bytes in powers of 1000, as torch's and the makers' figures are compared: 1.73 MB, 112 GB."""
    for unit, scale in _DECIMAL:
        if abs(count) >= scale:
            return f"{count / scale:.4g} {unit}" if abs(count) / scale < 1000 else f"{count / scale:.0f} {unit}"
    return f"{count:.0f} B"


def binary_size(count: float) -> str:
    """Bytes in powers of 1024, as systems tell files and memory: 64 MiB, 79.2 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{number(count)} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def duration(seconds: float) -> str:
    """12 us, 3.4 ms, 1.2 s."""
    for unit, scale in _TIMES:
        if seconds >= scale:
            return f"{number(seconds / scale)} {unit}"
    return f"{number(seconds * 1e9)} ns"


def rate(per_second: float) -> str:
    """Three digits, in groups of thousands: 6,940; 97.5."""
    return f"{float(f'{per_second:.3g}'):,.0f}" if abs(per_second) >= 1000 else number(per_second)


def percent(share: float, decimals: int = 0, sign: str = "") -> str:
    """A share of 1: 9.5 %; ``sign`` "+" for a change."""
    return f"{100 * share:{sign}.{decimals}f} %"


def reading(series: str, value: float) -> str:
    """A value of a recorded series, in the unit that people read it in."""
    if series == "peak_memory_bytes":
        return size(value)
    return f"{rate(value)} / s" if series == "samples_per_second" else number(value)
