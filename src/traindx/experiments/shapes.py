"""The four shapes of an overfit that fails, and the one of an overfit that works."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from traindx.core.exams import Shape

FITS = 0.1  # share of the start's excess over the floor that may be left (rule of thumb)
BLOWN_UP = 1e10  # a loss on its way to overflow (rule of thumb)
GROWN = 1e3  # times the start
TURNS = 0.4  # share of changes of direction from which a curve swings
SWING = 0.1  # mean change from step to step against the level
RISES = 0.7  # share of steps that rise
STILL = 0.03  # change over the last third, as a share of what is left, under which nothing moves
LAST = 8


def shape_of(losses: Sequence[float], floor: float = 0.0, chance: float | None = None) -> Shape | None:
    """The shape of a loss on a pinned batch. None: it still falls and has not arrived.

    ``floor`` is the lowest loss that can be reached (contradictory labels), ``chance`` that of the best constant
    answer: a start that is worse than chance is not counted in favour.
    """
    if any(not math.isfinite(value) or value > BLOWN_UP for value in losses):
        return "explodes"
    start, end = losses[0], median(losses[-LAST:])
    reference = start if chance is None else min(start, chance)
    if end - floor <= FITS * (reference - floor):
        return "fits"
    if start > 0 and end > GROWN * start:
        return "explodes"
    tail = losses[len(losses) // 2:]
    if _swings(tail):
        return "oscillates"
    if end > start + 0.02 * abs(start) and _share_rising(losses) > RISES:
        return "goes-up"
    return "flat" if _still(losses, floor) else None


def _swings(tail: Sequence[float]) -> bool:
    changes = [after - before for before, after in pairwise(tail)]
    if len(changes) < 4:
        return False
    turns = sum(a * b < 0 for a, b in pairwise(changes)) / (len(changes) - 1)
    size = sum(map(abs, changes)) / len(changes)
    return turns > TURNS and size > SWING * abs(median(tail))


def _share_rising(losses: Sequence[float]) -> float:
    return sum(after > before for before, after in pairwise(losses)) / max(1, len(losses) - 1)


def _still(losses: Sequence[float], floor: float) -> bool:
    """Whether the last third changes nothing any more, or nothing has moved at all."""
    third = max(2, len(losses) // 3)
    before, end = median(losses[-third:][:LAST]), median(losses[-LAST:])
    left = abs(end - floor) or 1.0
    return before - end < STILL * left


def blow_up(losses: Sequence[float]) -> str:
    """``at-once`` where it grows from the first steps on (rate too large), ``late`` after a calm (numerics)."""
    gone = next((at for at, value in enumerate(losses) if not math.isfinite(value) or value > BLOWN_UP), len(losses))
    calm = sum(math.isfinite(value) and value <= 2 * abs(losses[0]) for value in losses[:gone])
    return "late" if gone > 10 and calm > 0.8 * gone else "at-once"


def settled(losses: Sequence[float]) -> float:
    """Where the curve ends: the median of its last steps."""
    return median(losses[-LAST:])
