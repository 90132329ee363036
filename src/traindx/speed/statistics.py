"""Paired ratios: their median, an interval by bootstrap, and what may be said of them."""
from __future__ import annotations

import random
from collections.abc import Sequence

from traindx.core.speed import Interval, Load, Outcome

PAIRS = 7  # fewer bear no verdict
BAR = 0.02  # changes under it are not worth a word
RESAMPLES = 2000


def median(values: Sequence[float]) -> float:
    """Raises ValueError for none."""
    if not values:
        raise ValueError("the median of nothing")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies, by linear interpolation between ranks."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def interval_of(ratios: Sequence[float], seed: int = 0) -> Interval | None:
    """The median with the 95 % percentile bootstrap interval of the median (Efron); None for none."""
    if not ratios:
        return None
    draw = random.Random(seed)
    count = len(ratios)
    medians = sorted(median(draw.choices(ratios, k=count)) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
    return Interval(median(ratios), low, high, count, sum(ratio > 1 for ratio in ratios))


def ratios_of(blocks: Sequence[dict[str, float]], before: str, after: str) -> list[float]:
    """Of each round that timed both: how many times faster ``after`` is."""
    return [block[before] / block[after] for block in blocks if block.get(before) and block.get(after)]


def outcome_of(interval: Interval | None, load: Load | None, any_load: bool = False) -> Outcome | None:
    """None where nothing may be said: too few pairs, or a machine that is too busy."""
    if interval is None or interval.pairs < PAIRS or (load is not None and load.too_much and not any_load):
        return None
    if interval.low > 1 + BAR:
        return "faster"
    if interval.high < 1 - BAR:
        return "slower"
    return "no-clear-difference"


def largest_difference(losses: Sequence[float], others: Sequence[float]) -> float | None:
    """Between two beginnings of a training, relative to the larger; None where there is nothing to compare."""
    pairs = list(zip(losses, others))
    if not pairs:
        return None
    if any((a != a) != (b != b) for a, b in pairs):
        return float("inf")
    return max(abs(a - b) / max(abs(a), abs(b), 1e-12) if a == a else 0.0 for a, b in pairs)
