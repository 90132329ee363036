"""The search for loader settings: a few good questions instead of the full grid."""
from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

BETTER = 1.03  # what the next larger setting must gain to be worth its processes and memory
PREFETCH = (2, 4, 8)


@dataclass(frozen=True)
class Setting:
    """Of a DataLoader. ``prefetch`` and ``pin`` None: as the program has them."""

    workers: int
    prefetch: int | None = None
    pin: bool | None = None

    @property
    def name(self) -> str:
        parts = [f"num_workers={self.workers}"]
        parts += [f"prefetch_factor={self.prefetch}"] if self.prefetch is not None and self.workers else []
        parts += [f"pin_memory={self.pin}"] if self.pin is not None else []
        return ", ".join(parts)


Asking = Generator[Setting, float, Setting | None]


def search(current: Setting, most: int, cuda: bool = False) -> Asking:
    """Yields settings to be tried, and is sent the speed of each relative to the program's own. Returns the best; None where the
    program's own is as good.

    Workers double until that gains nothing, then the middle between the best and its neighbours; then prefetching; then pinned memory.
    """
    tried: dict[Setting, float] = {current: 1.0}

    def ask(setting: Setting) -> Generator[Setting, float, float]:
        if setting not in tried:
            tried[setting] = yield setting
        return tried[setting]
    best = yield from _workers(current, most, ask)
    for prefetch in PREFETCH[1:] if best.workers else ():
        asked = Setting(best.workers, prefetch, best.pin)
        if (yield from ask(asked)) <= tried[best] * BETTER:
            break
        best = asked
    if cuda and not current.pin:
        asked = Setting(best.workers, best.prefetch, True)
        if (yield from ask(asked)) > tried[best] * BETTER:
            best = asked
    return best if tried[best] > BETTER else None


def _workers(current: Setting, most: int, ask: Any) -> Generator[Setting, float, Setting]:
    counts = sorted({1, *(2 ** k for k in range(1, 12)), most})
    best, best_speed = current, 1.0
    for count in (count for count in counts if count <= most):
        speed = yield from ask(Setting(count))
        if speed > best_speed * (BETTER if count > best.workers else 1.0):
            best, best_speed = Setting(count), speed
        elif count > 1:
            break
    middle = _middle(best.workers, most)
    if middle is not None:
        speed = yield from ask(Setting(middle))
        best = Setting(middle) if speed > best_speed * BETTER else best
    return best


def _middle(workers: int, most: int) -> int | None:
    """Half way to the next doubling, where there is something between."""
    middle = workers + workers // 2
    return middle if workers >= 2 and middle < min(2 * workers, most) else None
