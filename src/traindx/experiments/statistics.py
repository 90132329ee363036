"""When two sets of runs differ: levels of the log loss, ranges over seeds, and what chance would do."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from traindx.core.text import Text, number

Outcome = Literal["proved", "refuted", "undecided"]
Direction = Literal["lower", "higher"]

LAST = 8  # steps over which a level is taken
CEILING = math.log(1e30)  # where a loss that is not finite is put: above every other, but a number
SMALLEST = 0.05  # in log loss: 5 %, below which no difference is called one (rule of thumb)


def level(losses: Sequence[float], horizon: int | None = None) -> float | None:
    """Mean log loss of the last steps up to ``horizon``. None for a loss that is not positive: it has no log scale."""
    window = list(losses[:horizon])[-LAST:]
    if not window or any(value <= 0 for value in window):
        return None
    return mean(min(CEILING, math.log(value)) if math.isfinite(value) else CEILING for value in window)


@dataclass(frozen=True)
class Comparison:
    """Plain runs against changed ones; ``effect`` is positive where the change did what was predicted."""

    plain: tuple[float, ...]
    changed: tuple[float, ...]
    direction: Direction

    @property
    def effect(self) -> float:
        gap = mean(self.plain) - mean(self.changed)
        return gap if self.direction == "lower" else -gap

    @property
    def spread(self) -> float:
        """The larger of the two ranges over seeds."""
        return max(max(side) - min(side) for side in (self.plain, self.changed))

    @property
    def gap(self) -> float:
        """Empty room between the two ranges in the predicted direction; negative where they overlap."""
        if self.direction == "lower":
            return min(self.plain) - max(self.changed)
        return min(self.changed) - max(self.plain)

    @property
    def gap_against(self) -> float:
        """The same for the opposite of what was predicted."""
        return Comparison(self.changed, self.plain, self.direction).gap

    @property
    def chance(self) -> float:
        """How often ranges would part, this way or that, if the change did nothing: 2 / C(n + m, n)."""
        return 2 / math.comb(len(self.plain) + len(self.changed), len(self.plain))


def decide(comparison: Comparison, refutes: bool, last: bool) -> Outcome:
    """``proved`` where the ranges over seeds do not overlap and the gap exceeds half the larger range (twice the range
    with two seeds, which part by chance in one of three comparisons) and :data:`SMALLEST`.

    ``refuted`` only where the experiment would have to show the effect (``refutes``): the opposite holds by the same
    rule, or, with all seeds run (``last``), both sides are the same within :data:`SMALLEST`.
    """
    needed = max(SMALLEST, comparison.spread * (2.0 if len(comparison.plain) < 3 else 0.5))
    if comparison.gap > needed:
        return "proved"
    if refutes and comparison.gap_against > needed:
        return "refuted"
    everything = (*comparison.plain, *comparison.changed)
    if refutes and last and max(everything) - min(everything) < SMALLEST:
        return "refuted"
    return "undecided"


def decide_same(comparison: Comparison, last: bool) -> Outcome:
    """For a prediction of no difference: ``refuted`` as soon as the change makes one in its direction, ``proved`` only with
    all seeds run, means within :data:`SMALLEST` and ranges that overlap."""
    if decide(comparison, False, last) == "proved":
        return "refuted"
    overlap = max(comparison.gap, comparison.gap_against) <= 0
    return "proved" if last and overlap and abs(comparison.effect) < SMALLEST else "undecided"


WHY = Text("{statistic} as written {plain}, changed {changed}; effect {effect}, largest range over seeds {spread}",
           "{statistic}：原样 {plain}，改动后 {changed}；效应 {effect}，种子间最大散布 {spread}")
CHANCE = Text("; ranges part by chance in {chance} of such comparisons", "；纯属偶然时，两组也有 {chance} 的机会分开")


def told(comparison: Comparison, statistic: Text) -> Text:
    def shown(values: Sequence[float]) -> str:
        return f"{number(min(values))} .. {number(max(values))} (n={len(values)})"
    said = WHY.fill(statistic=statistic, plain=shown(comparison.plain), changed=shown(comparison.changed),
                    effect=number(comparison.effect), spread=number(comparison.spread))
    return said + CHANCE.fill(chance=f"1/{round(1 / comparison.chance)}") if len(comparison.plain) > 2 else said
